// SPDX-License-Identifier: Apache-2.0

// Package fault owns the faults that tests inject between a scheduler and its API server: a set of Rules that can
// change while both run, a Transport that applies them inside a process, and a Proxy on loopback that applies them to
// a program that we do not change. So the same rules apply to kumiki and to upstream's kube-scheduler.
//
// A request is refused, delayed, cut, answered wrongly after it was carried out, or carried out after it was
// answered. A watch loses, repeats, reorders, delays or corrupts events, stalls, ends, or reports that its version is
// too old. Below both, the Proxy can be partitioned from its clients: no bytes pass and no connection breaks.
//
// Rejected: rules as callbacks only, since a fault that is a value can be printed with the case it made fail; faults
// in the kernel's packet filter, since they need root and cannot tell a bind from a list; chance inside the rules,
// since the caller that draws (the soak) has the seed.
package fault
