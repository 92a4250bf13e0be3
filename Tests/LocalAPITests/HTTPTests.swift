import Testing

/// One test at a time: each blocks a thread of the pool while it reads from its socket, and on two cores the pool has two;
/// the server's tasks need the other.
@Suite(.serialized) struct HTTPTests {
  @Suite struct RouteTests {}
  @Suite struct StreamTests {}
}
