import ParleySealing
import ParleyStore

/// The store's keys are the profile's.
extension RestKeys: StoreSeal {}
