"""Doors in a list and in the DNS; the name server is one of a few lines."""

import asyncio

import dns.asyncresolver
import dns.message
import dns.rcode
import dns.rrset
import pytest

from autoscaler.telemetry.demand.find import Listed, Named, ServiceRecord
from autoscaler.telemetry.demand.options import ListedDoors, NamedDoors, ServiceRecordDoors
from load.free_port import free_port

NAME = "_admin._tcp.chat.default.svc.cluster.local"


class NameServer(asyncio.DatagramProtocol):
    """Answers service records: targets by name; a name that it has not is no name."""

    def __init__(self, records):
        self.records = records

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        question = dns.message.from_wire(data)
        answer = dns.message.make_response(question)
        name = question.question[0].name.to_text(omit_final_dot=True)
        if name not in self.records:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif self.records[name]:
            answer.answer.append(dns.rrset.from_text(f"{name}.", 5, "IN", "SRV", *self.records[name]))
        self.transport.sendto(answer.to_wire(), address)


@pytest.fixture
async def resolver_of():
    transports = []

    async def made(records) -> dns.asyncresolver.Resolver:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: NameServer(records), local_addr=("127.0.0.1", 0)
        )
        transports.append(transport)
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = transport.get_extra_info("sockname")[1]
        return resolver

    yield made
    for transport in transports:
        transport.close()


async def test_what_can_be_no_name_has_no_address():
    assert await Named(NamedDoors("http://chat..default.svc:8082")).look() == ()


async def test_a_service_record_names_hosts_and_ports(resolver_of):
    told = {NAME: ["0 50 8082 pod-b.chat.default.svc.", "0 50 8083 pod-a.chat.default.svc."]}
    options = ServiceRecordDoors(NAME, is_https=True)
    assert await ServiceRecord(options, await resolver_of(told)).look() == [
        "https://pod-a.chat.default.svc:8083",
        "https://pod-b.chat.default.svc:8082",
    ]


@pytest.mark.parametrize("records", [{}, {NAME: []}])
async def test_a_name_without_records_is_an_answer_that_nobody_is_there(resolver_of, records):
    found = await ServiceRecord(ServiceRecordDoors(NAME), await resolver_of(records)).look()
    assert found is not None and list(found) == []


async def test_a_name_server_that_does_not_answer_says_nothing(monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.demand.find._PATIENCE", 0.2)
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], free_port()
    assert await ServiceRecord(ServiceRecordDoors(NAME), resolver).look() is None


async def test_every_address_of_a_name_is_a_door():
    found = await Named(NamedDoors("http://localhost:8082")).look()
    assert "http://127.0.0.1:8082" in found


async def test_a_list_is_what_it_is():
    assert await Listed(ListedDoors(("http://a:1/", "http://b:2"))).look() == ("http://a:1", "http://b:2")


@pytest.mark.parametrize("urls, why", [((), "urls is empty"), (("http://a:1",) * 2, "listed twice")])
def test_a_list_that_cannot_be_is_refused(urls, why):
    with pytest.raises(ValueError, match=why):
        ListedDoors(urls)
