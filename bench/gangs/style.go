// SPDX-License-Identifier: Apache-2.0

package gangs

import "github.com/kumiki-scheduler/kumiki/record"

// Style models how another scheduler places gangs: its pods are queued and tried one by one. A pod that has a node
// keeps it and waits until enough pods of its gang have one (upstream: Permit).
//
// The fields are the rules in which known gang schedulers differ. docs/gangs-compared.md measures the price of each.
type Style struct {
	// Plugin is the name of the plugin that gates and rejects pods, as decisions and conditions show it.
	Plugin string
	// Adjacent orders the queue by priority, then by the age of the gang, then by name, so that members of a gang are
	// adjacent while they are active.
	Adjacent bool
	// Gated holds members back until enough of them exist and each waits for nothing but its gang; then all are
	// released together. Without it, a member is tried when it arrives, and that attempt fails.
	Gated bool
	// OnPermit releases a gang only when the next pod of any kind is reserved a node; without it, a gang is released
	// as soon as it is ready. Requires Gated.
	OnPermit bool
	// FirstActivates makes the first member with a node activate the others, and only the first.
	FirstActivates bool
	// Wait is how long a member waits for the others. Jitter is the upper bound of a random time that is added, drawn
	// once for each try of the gang.
	Wait, Jitter record.Time
	// Tolerated is the share of the quorum, in percent, that may be missing when a member fits no node without the
	// waiting members being rejected.
	Tolerated int
	// Backoff is how long a gang is not tried after it was rejected; 0 disables it. With a MaxBackoff, it doubles up
	// to that, and a random time of up to half of it is added.
	Backoff, MaxBackoff record.Time
	// Exact allows waiting members only if they are as many as the size of the gang, not counting members that run. A
	// pod of a gang of which some pods run is allowed alone.
	Exact bool
	// Replaces allows a pod alone if its gang has been complete before.
	Replaces bool
	// Denominates clears the nominations of all members when one of them fails.
	Denominates bool
	// ByName counts members by name, including those that are being deleted.
	ByName bool
	// Explains writes an event on each waiting pod that says what it waits for.
	Explains bool
}

// Coscheduling models the plugin of that name (sigs scheduler-plugins, pkg/coscheduling).
func Coscheduling() Style {
	return Style{Plugin: "Coscheduling", Adjacent: true, FirstActivates: true, Wait: 60 * record.Second, Tolerated: 10, ByName: true}
}

// Pfnet models pfnet's plugin (pfnet scheduler-plugins, plugins/gang).
func Pfnet() Style {
	return Style{Plugin: "gang", Gated: true, OnPermit: true, Wait: 30 * record.Second, Jitter: 30 * record.Second, Exact: true,
		Denominates: true, Explains: true}
}

// ImprovedCoscheduling is coscheduling with the rules that it lacks, as far as they are possible while members are
// tried one by one.
func ImprovedCoscheduling() Style {
	return Style{Plugin: "ImprovedCoscheduling", Adjacent: true, Gated: true, Wait: 60 * record.Second, Jitter: 30 * record.Second,
		Backoff: record.Second, MaxBackoff: 10 * record.Second, Replaces: true, Denominates: true, Explains: true}
}
