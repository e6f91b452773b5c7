"""Stands in for AWS's load balancers (a simulation): gives Services of type LoadBalancer an address and forwards to
their ready endpoints, on sockets that the host's side opened on its loopback. Also leads the host to the API server
and to the simulated AWS. TCP only, one relay for all, TCP_NODELAY on both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import random
import socket
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes.client import CoreV1Api, DiscoveryV1Api

from srvmod.local import facts
from srvmod.local.kube import api_client, untyped

log = logging.getLogger("load-balancer")
HEALTH_PORT = 9180
REFRESH_SECONDS = 0.5
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
        client = api_client(kubeconfig)
        self.core, self.discovery, self.targets = untyped(CoreV1Api(client)), untyped(DiscoveryV1Api(client)), targets
        self.address_of: dict[str, str] = {}
        self.free = (f"10.88.0.{last}" for last in itertools.count(100))

    def refresh(self) -> None:
        ready: list[Address] = []
        for service in self.core.list_service_for_all_namespaces().items:
            if service.spec.type != "LoadBalancer":
                continue
            name, namespace = service.metadata.name, service.metadata.namespace
            if not (service.status.load_balancer and service.status.load_balancer.ingress):
                uid = service.metadata.uid
                if uid not in self.address_of:
                    self.address_of[uid] = next(self.free)
                address = self.address_of[uid]
                self.core.patch_namespaced_service_status(
                    name, namespace, {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
                )
                log.info("service %s/%s: address %s", namespace, name, address)
            slices = self.discovery.list_namespaced_endpoint_slice(
                namespace, label_selector=f"kubernetes.io/service-name={name}"
            ).items
            for piece in slices:
                port = next((p.port for p in piece.ports or [] if p.port), None)
                for endpoint in piece.endpoints or []:
                    if port and endpoint.conditions.ready:
                        ready += [(address, port) for address in endpoint.addresses]
        if sorted(ready) != sorted(self.targets.addresses):
            log.info("endpoint targets: %s", ready)
        self.targets.addresses = ready

    async def follow(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.refresh)
            except Exception as error:  # the API server may restart; what is known stays in use
                log.warning("refresh: %s", error)
            await asyncio.sleep(REFRESH_SECONDS)


async def _healthz(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
    await writer.drain()
    writer.close()


async def serve(listeners: dict[str, int], kubeconfig: Path) -> None:
    gateway = Targets()
    known = {
        "api": Targets([("127.0.0.1", facts.API_PORT)]),
        "aws": Targets([(facts.BRIDGE_ADDRESS, facts.AWS_PORT)]),
        "endpoint": gateway,
    }
    for name, descriptor in listeners.items():
        await asyncio.start_server(Relay(name, known[name]).accept, sock=socket.socket(fileno=descriptor))
    await asyncio.start_server(_healthz, "127.0.0.1", HEALTH_PORT)
    await Services(kubeconfig, gateway).follow()


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
