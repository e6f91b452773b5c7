"""What runs on every GPU node beside the engines: device plugin and dcgm-exporter."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.documents import dcgm_exporter
from srvmod.infra.platform.documents.device_plugin import device_plugin
from srvmod.infra.platform.objects import declare


@dataclass(frozen=True)
class GpuDaemonsArgs:
    """Nodes of `pool` get both images' pods. `operator` is the installed Prometheus operator; without one the pods
    carry the annotations that other Prometheus set-ups look for."""

    pool: str
    device_plugin_image: str
    dcgm_exporter_image: str
    operator: pulumi.Resource | None


class GpuDaemons(pulumi.ComponentResource):
    """Device plugin, dcgm-exporter and its PodMonitor. Not awaited: there may be no GPU node yet."""

    def __init__(self, name: str, args: GpuDaemonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:GpuDaemons", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare("device-plugin", device_plugin(args.pool, args.device_plugin_image), child, awaited=False)
        counters = declare("dcgm-exporter-counters", dcgm_exporter.config_map(), child)
        declare(
            "dcgm-exporter",
            dcgm_exporter.daemon_set(args.pool, args.dcgm_exporter_image, annotated=args.operator is None),
            pulumi.ResourceOptions(parent=self, depends_on=[counters]),
            awaited=False,
        )
        if args.operator is not None:
            declare(
                "dcgm-exporter-monitor",
                dcgm_exporter.pod_monitor(),
                pulumi.ResourceOptions(parent=self, depends_on=[args.operator]),
            )
        self.register_outputs({})
