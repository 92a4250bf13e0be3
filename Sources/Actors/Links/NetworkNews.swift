import ParleyMachines
import ParleyTransport
import ParleyVocabulary

/// What became of the interfaces between two looks, for the login machine and for people.
package struct NetworkNews: Equatable, Sendable {
  private struct Used: Hashable {
    let interface: String
    /// The port is that of the socket: an address that was gone for a moment has another.
    let address: Address
  }

  package let workingCount: Int
  package let change: NetworkChange
  package let lost: String
  package let using: String

  package init(from before: [InterfaceState], to states: [InterfaceState]) {
    let (old, new) = (Self.used(before), Self.used(states))
    // Some of an interface may fail while its other addresses work.
    workingCount = states.count { !$0.addresses.isEmpty }
    if new.isSuperset(of: old) { change = old == new ? .kept : .extended } else { change = .replaced }
    let gone = before.compactMap { state -> String? in
      guard state.addresses.contains(where: { !new.contains(Used(interface: state.name, address: $0)) }) else {
        return nil
      }
      let now = states.first { $0.name == state.name }
      if let now, let trouble = now.trouble, now.addresses.isEmpty { return "\(state.name.escapedLine): \(trouble)" }
      let hosts = state.addresses.filter { !new.contains(Used(interface: state.name, address: $0)) }.map(Self.host)
      return "\(state.name.escapedLine) lost \(hosts.joined(separator: " "))"
    }
    lost = gone.isEmpty ? "no interface can be used" : gone.joined(separator: "; ")
    let working = states.filter { !$0.addresses.isEmpty }.map { state in
      "\(state.name.escapedLine) \(state.addresses.map(Self.host).joined(separator: " "))"
    }
    using = working.isEmpty ? "no interface" : "using " + working.joined(separator: ", ")
  }

  package var event: LoginEvent {
    .interfacesChanged(workingCount: workingCount, change, lost: lost, using: using)
  }

  private static func used(_ states: [InterfaceState]) -> Set<Used> {
    Set(states.flatMap { state in state.addresses.map { Used(interface: state.name, address: $0) } })
  }

  /// Without the port, which says nothing to people.
  private static func host(_ address: Address) -> String {
    let text = address.description
    guard let colon = text.lastIndex(of: ":") else { return text }
    return String(text[..<colon])
  }
}
