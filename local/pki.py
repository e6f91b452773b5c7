"""The local stack's own certificate authority: random per stack, keys never leave the state folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = dt.timedelta(days=30)


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Authority:
    """A CA in a folder: `ca.crt`, `ca.key`, and one pair of files per issued certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert_file = folder / "ca.crt"
        self.key_file = folder / "ca.key"
        if not self.cert_file.exists():
            self._create()
        self._cert = x509.load_pem_x509_certificate(self.cert_file.read_bytes())
        key = serialization.load_pem_private_key(self.key_file.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{self.key_file}: expected an EC key, found {type(key).__name__}; remove the folder")
        self._key = key

    def _create(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "srvmod-local")])
        cert = (
            self._builder(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(ca=True), critical=True)
        )
        _write(self.key_file, _key_pem(key))
        _write(self.cert_file, cert.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @staticmethod
    def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + VALID_FOR)
        )

    def issue(
        self, file: str, common_name: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Certificate and key for a client (`groups` are Kubernetes groups) and, with `hosts`, a server.

        Returns (certificate file, key file); an existing pair is returned as it is.
        """
        cert_file, key_file = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        if cert_file.exists() and key_file.exists():
            return cert_file, key_file
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
            + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        )
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        cert = (
            self._builder(subject, self._cert.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        )
        if hosts:
            cert = cert.add_extension(x509.SubjectAlternativeName([_alt_name(host) for host in hosts]), critical=False)
        _write(key_file, _key_pem(key))
        _write(cert_file, cert.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return cert_file, key_file

    def service_account_keys(self) -> tuple[Path, Path]:
        """(public, private) key files that sign service-account tokens."""
        public, private = self.folder / "sa.pub", self.folder / "sa.key"
        if not private.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            _write(private, _key_pem(key))
            _write(
                public,
                key.public_key().public_bytes(
                    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
                ),
            )
        return public, private


def _alt_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
