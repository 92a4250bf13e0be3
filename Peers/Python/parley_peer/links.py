"""Sockets: one that hears the group and one that sends, for each address of each interface (Datagrams.md)."""
import asyncio
import fcntl
import socket
import struct

GROUP_4, GROUP_6 = "239.255.80.76", "ff12::8050:4c4e"
PORT = 45_800
HOP_LIMIT = 1
# linux/sockios.h
SIOCGIFADDR = 0x8915
RECEIVE_BUFFER_BYTES = 4 << 20


def address_4(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", interface.encode()))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def address_6(interface):
    """Its link-local address. The loopback interface has IPv4 only."""
    if interface == "lo":
        return None
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return None
    for digits, _, _, scope, _, name in rows:
        if name == interface and scope == "20":
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
    return None


def hearing_socket(family, interface):
    heard = socket.socket(family, socket.SOCK_DGRAM)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    index = socket.if_nametoindex(interface)
    if family == socket.AF_INET:
        heard.bind((GROUP_4, PORT))
        request = socket.inet_aton(GROUP_4) + struct.pack("=4xi", index)
        heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        # linux/in.h, IP_MULTICAST_ALL: only what this socket has joined.
        heard.setsockopt(socket.IPPROTO_IP, 49, 0)
    else:
        heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        heard.bind((GROUP_6, PORT, 0, index))
        request = socket.inet_pton(socket.AF_INET6, GROUP_6) + struct.pack("=I", index)
        heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
    heard.setblocking(False)
    return heard


def sending_socket(family, interface, address):
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    index = socket.if_nametoindex(interface)
    if family == socket.AF_INET:
        sender.bind((address, 0))
        request = struct.pack("=4x4si", socket.inet_aton(address), index)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOP_LIMIT)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    else:
        sender.bind((address, 0, 0, index))
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOP_LIMIT)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    sender.setblocking(False)
    return sender


class Link:
    """An address of an interface."""

    def __init__(self, family, interface, address):
        self.family, self.interface, self.address = family, interface, address
        self.index = socket.if_nametoindex(interface)
        self.group = (GROUP_4, PORT) if family == socket.AF_INET else (GROUP_6, PORT, 0, self.index)

    async def open(self, receive):
        loop, link = asyncio.get_running_loop(), self

        class Heard(asyncio.DatagramProtocol):
            def datagram_received(self, data, address):
                receive(data, link, address)

            def error_received(self, error):
                pass  # that nobody is at an address any more shows in silence

        heard = hearing_socket(self.family, self.interface)
        self.heard, _ = await loop.create_datagram_endpoint(Heard, sock=heard)
        sender = sending_socket(self.family, self.interface, self.address)
        self.sender, _ = await loop.create_datagram_endpoint(Heard, sock=sender)

    def send(self, data, address=None):
        self.sender.sendto(data, address or self.group)

    def listening_socket(self, port):
        listening = socket.socket(self.family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((self.address, port) if self.family == socket.AF_INET else (self.address, port, 0, self.index))
        listening.setblocking(False)
        return listening

    def close(self):
        self.heard.close()
        self.sender.close()


def links(interface):
    found = [(socket.AF_INET, address_4(interface)), (socket.AF_INET6, address_6(interface))]
    return [Link(family, interface, address) for family, address in found if address]


async def connect(address):
    """A connection to a datagram's kind of address: host, port and, of IPv6, flow and scope."""
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    stream = socket.socket(family, socket.SOCK_STREAM)
    stream.setblocking(False)
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(stream, address)
        return await asyncio.open_connection(sock=stream)
    except BaseException:
        stream.close()
        raise
