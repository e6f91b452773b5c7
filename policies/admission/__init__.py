"""The third gate: the rules as ValidatingAdmissionPolicies, rendered to `manifests/admission/`.

Never more lenient than `srvmod check` on the same object. What CEL can't establish is denied, and the message says how
to write it. What only several objects say together (a scaler that is missing, a pool's node class) isn't seen here.
"""
