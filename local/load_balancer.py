"""Stands in for AWS's load balancers (a simulation): gives Services of type LoadBalancer an address and forwards to
their ready endpoints, on sockets that the host's side opened on its loopback. Also leads the host to the API server
and to the simulated AWS. TCP only, one relay for all, TCP_NODELAY on both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from srvmod.local import facts
from srvmod.local.api import Api, ApiError, Mirror, Object, key
from srvmod.local.health import answer_health

log = logging.getLogger("load-balancer")
HEALTH_PORT = 9180
SERVICES, SLICES = "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"
RETRY_SECONDS = 0.5
ADDRESSES = tuple(f"10.88.0.{last}" for last in range(100, 255))
CHUNK_BYTES = 256 * 1024
Address = tuple[str, int]


@dataclass
class Targets:
    """Where a listener forwards to; replaced as endpoints come and go."""

    addresses: list[Address] = field(default_factory=list)

    def order(self) -> list[Address]:
        """All targets, a random one first: a connection that is refused tries the next."""
        return random.sample(self.addresses, len(self.addresses))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except (ConnectionError, asyncio.IncompleteReadError, OSError):
        writer.close()


def _no_delay(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Relay:
    """Forwards each accepted connection to one of `targets`."""

    def __init__(self, name: str, targets: Targets) -> None:
        self.name, self.targets = name, targets

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _no_delay(writer)
        for host, port in self.targets.order():
            try:
                up_reader, up_writer = await asyncio.wait_for(asyncio.open_connection(host, port), 3)
            except (OSError, TimeoutError):
                continue
            _no_delay(up_writer)
            try:
                await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))
            finally:
                up_writer.close()
                writer.close()
            return
        log.warning("%s: no target answers (%s)", self.name, self.targets.addresses or "none known")
        writer.close()


class Services:
    """Follows Services of type LoadBalancer: sets their address, collects their ready endpoints."""

    def __init__(self, kubeconfig: Path, targets: Targets) -> None:
        self.api, self.targets = Api(kubeconfig), targets
        self.changed = threading.Event()
        self.services, self.slices = (Mirror(self.api, path, self.changed.set) for path in (SERVICES, SLICES))
        self.refused = ""

    def follow(self) -> None:
        """Works until the process ends. What is known stays in use while the API server is away."""
        self.services.start()
        self.slices.start()
        while True:
            self.changed.wait()
            self.changed.clear()
            try:
                self.refresh()
            except ApiError as error:
                self.refused = str(error)
                log.warning("refresh: %s", error)
                threading.Timer(RETRY_SECONDS, self.changed.set).start()

    def problem(self) -> str:
        """Why it isn't healthy; empty when it is."""
        unseen = next((mirror for mirror in (self.services, self.slices) if mirror.problem), None)
        return f"{unseen.path} can't be watched: {unseen.problem}" if unseen else self.refused

    def refresh(self) -> None:
        """Once over what is seen now. Raises ApiError when an address can't be given."""
        if not (self.services.synced and self.slices.synced):
            return
        balanced = [item for item in self.services.objects.values() if _balanced(item)]
        newest = max(balanced, key=lambda item: (item["metadata"]["creationTimestamp"], key(item)), default=None)
        led_to = key(newest) if newest else ""
        ready = [
            address for item in self.slices.objects.values() if _service(item) == led_to for address in _ready(item)
        ]
        if sorted(ready) != sorted(self.targets.addresses):
            log.info("endpoint targets: %s", ready)
        self.targets.addresses = ready
        taken = {_address(service) for service in balanced}
        for service in balanced:
            if not _address(service):
                self._give_address(service, taken)
        others = sorted(key(item) for item in balanced if item is not newest)
        # a gateway that is replaced has two for a moment; two that stay are more than this simulation can do
        self.refused = (
            f"the one way in leads to Service {led_to}; the addresses of {', '.join(others)} lead nowhere"
            if others
            else ""
        )

    def _give_address(self, service: Object, taken: set[str]) -> None:
        """The lowest free one. Raises ApiError when there is none, or the API server doesn't take it."""
        meta = service["metadata"]
        free = [address for address in ADDRESSES if address not in taken]
        if not free:
            raise ApiError(0, f"all {len(ADDRESSES)} addresses of the simulated load balancers are taken")
        self.api.patch(
            f"/api/v1/namespaces/{meta['namespace']}/services/{meta['name']}/status",
            {"status": {"loadBalancer": {"ingress": [{"ip": free[0]}]}}},
        )
        taken.add(free[0])
        log.info("service %s/%s: address %s", meta["namespace"], meta["name"], free[0])


def _address(service: Object) -> str:
    ingress = service["status"].get("loadBalancer", {}).get("ingress") or [{}]
    return ingress[0].get("ip", "")


def _balanced(service: Object) -> bool:
    return service["spec"].get("type") == "LoadBalancer"


def _service(piece: Object) -> str:
    """The mirror's key of the Service that an EndpointSlice belongs to."""
    meta = piece["metadata"]
    return f"{meta['namespace']}/{meta.get('labels', {}).get('kubernetes.io/service-name', '')}"


def _ready(piece: Object) -> Iterator[Address]:
    port = next((port["port"] for port in piece.get("ports") or [] if port.get("port")), None)
    for endpoint in piece.get("endpoints") or []:
        if port and endpoint.get("conditions", {}).get("ready"):
            yield from ((address, port) for address in endpoint["addresses"])


async def serve(listeners: dict[str, int], kubeconfig: Path) -> None:
    gateway = Targets()
    known = {
        "api": Targets([("127.0.0.1", facts.API_PORT)]),
        "aws": Targets([(facts.BRIDGE_ADDRESS, facts.AWS_PORT)]),
        "endpoint": gateway,
    }
    for name, descriptor in listeners.items():
        await asyncio.start_server(Relay(name, known[name]).accept, sock=socket.socket(fileno=descriptor))
    services = Services(kubeconfig, gateway)
    answer_health(("127.0.0.1", HEALTH_PORT), services.problem)
    await asyncio.to_thread(services.follow)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listeners", required=True, help="name=descriptor, comma separated: api, aws, endpoint")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    listeners = {name: int(fd) for name, fd in (item.split("=") for item in args.listeners.split(","))}
    asyncio.run(serve(listeners, args.kubeconfig))


if __name__ == "__main__":
    main()
