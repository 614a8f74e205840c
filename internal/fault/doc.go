// SPDX-License-Identifier: Apache-2.0

// Package fault owns what goes wrong between a scheduler and its API server: a set of Rules that are switched while
// both run, a Transport that obeys them inside a process, and a Proxy on loopback that obeys them for a program
// that is not ours to change. The same rules thus strike kumiki and upstream's kube-scheduler.
//
// A request is refused, delayed, cut, answered wrongly after it was carried out, or carried out after it was
// answered. A watch loses, repeats, reorders, delays or garbles events, stands still, ends, or says that its
// version is too old. Below both, the Proxy can be parted from its clients: bytes stay where they are and no
// connection breaks.
//
// Rejected: rules as callbacks only, since a fault that is a value can be printed with the case it made fail; faults in
// the kernel's packet filter, since they need root and cannot tell a bind from a list; chance inside the rules, since
// whoever draws (the soak) has the seed.
package fault
