"""Networks as they are: several interfaces, some of no use; one that goes and comes; no IPv4; no multicast."""
from harness import Lan, eventually, expect, seconds_until

BOTH = {"Ana", "Ben"}


def meet(ana, ben, within=5):
    for node in (ana, ben):
        eventually(lambda: node.online("garden") == BOTH, within, f"{node.name} sees both")
    ana.cli("send", "garden", "hello")
    eventually(lambda: ben.texts("garden") == ["hello"], 5, "the text arrives")


def test_useless_interfaces_do_not_stop_a_start():
    with Lan(2) as lan:
        # As docker, a VPN and an unplugged card look like.
        lan.on(1, "ip", "link", "add", "docker0", "type", "bridge")
        lan.on(1, "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
        lan.on(1, "ip", "link", "set", "docker0", "up")
        lan.on(1, "ip", "tuntap", "add", "dev", "tun0", "mode", "tun")
        lan.on(1, "ip", "address", "add", "10.8.0.2/24", "dev", "tun0")
        lan.on(1, "ip", "link", "set", "tun0", "up")
        lan.on(1, "ip", "link", "add", "unplugged", "type", "veth", "peer", "name", "other")
        ana, ben = lan.node("Ana", interface=None), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben)
        interfaces = ana.cli("status")[0]["interfaces"]
        expect(any("eth0" in line for line in interfaces), f"eth0 is in use: {interfaces}")


def test_two_nodes_on_one_host():
    with Lan(1) as lan:
        ana, ben = lan.node("Ana", host=1), lan.node("Ben", host=1)
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben)


def test_two_nodes_on_loopback():
    with Lan(1) as lan:
        ana, ben = lan.node("Ana", host=1, interface="lo"), lan.node("Ben", host=1, interface="lo")
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben)


def test_without_ipv4():
    with Lan(2) as lan:
        for host in (1, 2):
            lan.on(host, "ip", "-4", "address", "flush", "dev", "eth0")
        ana, ben = lan.node("Ana"), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben)


def test_an_interface_that_goes_and_comes():
    with Lan(2) as lan:
        ana, ben = lan.node("Ana", interface=None), lan.node("Ben")
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben)
        lan.on(1, "ip", "link", "set", "eth0", "down")
        gone = seconds_until(lambda: ben.offline("garden") == {"Ana"}, 30, "Ben misses Ana")
        ben.cli("send", "garden", "while you were away")
        lan.on(1, "ip", "link", "set", "eth0", "up")
        back = seconds_until(lambda: ben.online("garden") == BOTH == ana.online("garden"), 30, "they meet again")
        eventually(lambda: ana.texts("garden") == ["hello", "while you were away"], 10, "Ana has what she missed")
        return f"missed after {gone:.1f} s, met again {back:.1f} s after"


def test_a_named_peer_without_multicast():
    with Lan(2) as lan:
        for host in (1, 2):
            lan.on(host, "iptables", "-w", "-A", "INPUT", "-d", "224.0.0.0/4", "-j", "DROP")
            lan.on(host, "ip6tables", "-w", "-A", "INPUT", "-d", "ff12::/16", "-j", "DROP")
        ana = lan.node("Ana", options=["--port", "45999"])
        ben = lan.node("Ben", options=["--peer", f"{ana.address}:45999"])
        for node in (ana, ben):
            node.join("garden")
        meet(ana, ben, within=10)
