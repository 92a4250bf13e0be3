"""A channel's attributes (Messages.md): what stands, of all that was said about them."""
from parley_wire import messages
from parley_wire.reading import Refused

ATTRIBUTES_MAX = 100


def acts(values):
    """What hidden entries say about attributes, in the order in which it counts."""
    for value in values:
        if not value["hidden"]:
            continue
        for place, item in enumerate(value["messages"]):
            if item["kind"] != messages.KINDS["attribute"] or not item["body"]:
                continue
            try:
                found = messages.message(item["body"].encode("utf-8", "surrogateescape"), value["author"])
            except Refused:
                continue
            if found["type"] == "attribute":
                order = (value["lamport"], value["author"], value["log"], value["number"], place)
                yield {**found, "author": value["author"], "log": value["log"], "order": order}


def takes_place_of(act, standing):
    if act["overwrite"] or act["author"] == standing["author"]:
        return True
    return standing["until_leave"] and act["replaces"] == f"{standing['log']:016x}"


def standing(values, runs):
    """By key; `values`: entries in the channel's order, `runs`: of each member who is there the log of its run."""
    found = {}
    for act in acts(values):
        before = found.get(act["key"])
        if before is not None and not takes_place_of(act, before):
            continue
        if act["value"] is None:
            found.pop(act["key"], None)
        else:
            found[act["key"]] = act
    first = sorted(found.values(), key=lambda act: act["order"])[:ATTRIBUTES_MAX]
    there = [act for act in first if not act["until_leave"] or runs.get(act["author"]) == act["log"]]
    return sorted(there, key=lambda act: act["key"].encode("utf-8", "surrogateescape"))
