"""Where admission and gate 1 differ on the table of cases, and why. A difference without a reason fails the test."""

from __future__ import annotations

STRICTER = {
    "INV-SRVMOD-01/readable-engine": "scripts, shells, variables and files are read by gate 1; CEL wants a plain list",
    "INV-SRVMOD-01/allowed-engine": "the policies are rendered for vLLM alone; a check may be configured for others",
    "INV-SRVMOD-01/simulated-engine": "where people are served a declared simulation is refused, not listed",
    "ENGINE-VERSION/options": "options have to be written by their whole names, numbers in digits",
    "MC-HW-01/tensor-parallel": "a value that gate 1 finds elsewhere, or under another spelling, isn't there for CEL",
    "MC-KV-01/kv-room": "the shape of one model is rendered into the policy; others can't be told",
    "MC-CB-01/sequence-limit": "sessions are rendered into the policy or noted on the object; a check may be "
    "configured",
    "MC-CB-01/admission": "a number that isn't in digits can't be compared",
    "INV-SRVMOD-02/buckets": "whether a rule asks for an edge isn't in the object, so 30 and 38 ms always have "
    "to be there",
    "INV-SRVMOD-02/scaler": "a query's unit and quantile are told only in the form that the message shows",
    "INV-SRVMOD-02/smooth-steps": "as options",
    "INV-SRVMOD-03/one-node": "kinds that can spread an engine over pods are refused in serving namespaces as kinds",
    "INV-SRVMOD-03/nvlink": "a ConfigMap's variables aren't in the object, also where it may be missing",
    "INV-SRVMOD-03/pool-pods": "where a pod lands is decided later: in a serving namespace every GPU pod has four",
    "INV-SRVMOD-03/gpu-sharing": "a device plugin's configuration in a ConfigMap isn't read",
    "INV-SRVMOD-03/topology-manager": "user data is read as a plain NodeConfig; MIME, TOML and shell aren't",
    "MC-SE-01/deadline": "whether a route or policy leads to an engine is in other objects: all of them count",
    "MC-SE-01/buffering": "a proxy's configuration in another kind, a snippet or a ConfigMap can't be read, so "
    "it is refused",
    "MC-SE-01/idle-timeout": "whether an object leads to an engine is in other objects: all of them count",
    "OPERATIONS/service-links": "whether a Service named vllm is near is in other objects",
    "MC-KV-01/kv-block": "a value breaks two rules, and the clause's own is told",
    "MC-SE-01/stream-interval": "a value breaks two rules, and the clause's own is told",
    "OPERATIONS/whole-cores": "whether the kubelets give out whole cores only is in the node class: ours do",
    "OPERATIONS/shared-memory": "the node's own /dev/shm is shared by its engines: a volume of the pod's is wanted",
    "OPERATIONS/drain": "a value that gate 1 finds elsewhere isn't there for CEL",
}
"""Refused by admission, fine or another clause for gate 1: by the rule that admission names."""

UNSEEN = {
    "a scaler that goes to one": "the scaler is another object; the Deployment's replicas count, and what it notes",
    "more engines noted than the scaler keeps": "the scaler is another object",
    "an alert at 50 ms in a rule file": "a ConfigMap isn't judged",
    "node class elsewhere": "a missing object isn't seen",
    "a pool of EKS Auto Mode": "the node class is another object",
    "a DaemonSet of an odd CPU beside engines": "where a pod lands is decided later, and it isn't an engine",
    "whole without scaler": "a missing object isn't seen",
    "whole without alert": "a missing object isn't seen",
    "a fallback to one engine": "fallbacks, pauses and formulas of KEDA are judged by gate 1",
    "idle at none": "as fallbacks",
    "a paused scaler": "as fallbacks; annotations are set when somebody works on the cluster",
    "a scaler that is paused at one": "as a paused scaler",
    "scale-up disabled": "as fallbacks",
    "half of the latency": "a query's arithmetic isn't read",
    "half of the latency by a factor in front": "a query's arithmetic isn't read",
    "zero where nothing is measured": "a query's arithmetic isn't read",
    "a formula instead of thresholds": "as fallbacks",
    "a scaler of a StatefulSet of the name": "the engine is another object",
    "a late alert where there is traffic": "any number in the expression counts as its limit",
    "P2P off in NCCL's file": "the file is in a ConfigMap",
    "P2P off in a file that a variable names": "the file is in a ConfigMap",
    "NCCL's file elsewhere": "the file is in the image",
    "Lua of an extension policy": "a program in a text isn't read",
    "idle time-out of the gateway's load balancer": "EnvoyProxy stands where the gateway is, not where engines are",
    "a bootstrap as text": "as the gateway's load balancer",
    "ingress-nginx as a whole": "as the gateway's load balancer",
    "HAProxy waits ten seconds": "annotations of nginx and ALB are read",
    "Traefik buffers by annotation": "the middleware is another object",
    "Traefik buffers by route": "kinds of other proxies aren't judged",
    "Contour with a deadline": "kinds of other proxies aren't judged",
    "a newer flag, older version": "the options of the pinned version are rendered into the policy",
}
"""Refused by gate 1, not by admission: what one object can't show. By the name of the case."""
