// SPDX-License-Identifier: Apache-2.0

package bottleneck

// Verdict is what Find found.
type Verdict struct {
	// Known is false if no bottleneck is named; NotKnown says why.
	Known    bool   `json:"known"`
	NotKnown string `json:"notKnown,omitempty"`
	// Source says by what it is known where pods were; empty if nothing was observed.
	Source string `json:"source,omitempty"`
	// Seconds is the observed time, PodSeconds the sum over all pods of the time in it before they were confirmed.
	Seconds    float64 `json:"seconds"`
	PodSeconds float64 `json:"podSeconds"`
	// Explained is the share of PodSeconds that Findings and Service explain, from 0 to 1.
	Explained float64 `json:"explained"`
	// Service is the part of PodSeconds that pods take where nothing delays them.
	Service float64 `json:"servicePodSeconds"`
	// Arrived and Placed are pods per second.
	Arrived float64 `json:"arrivedPerSecond"`
	Placed  float64 `json:"placedPerSecond"`
	// Little is the relative difference between PodSeconds and the second measurement; nil if there is none.
	Little *float64 `json:"littleDifference,omitempty"`
	// Findings are the causes, the largest first. If Known, the first is the bottleneck.
	Findings []Finding `json:"findings"`
	// Next is the bottleneck once the first is removed; nil if it is not known.
	Next *Cause `json:"next,omitempty"`
	// Unobserved are causes that the source cannot show: name -> reason.
	Unobserved map[string]string `json:"unobserved,omitempty"`
}

// Finding is one cause with its part of the pod-seconds.
type Finding struct {
	Cause      Cause    `json:"cause"`
	Stage      string   `json:"stage"`
	What       string   `json:"what"`
	PodSeconds float64  `json:"podSeconds"`
	Share      float64  `json:"share"`
	Evidence   []string `json:"evidence,omitempty"`
	Setting    string   `json:"setting"`
	Gain       Gain     `json:"gain"`
}

// Gain is what removing a cause is expected to change.
type Gain struct {
	// PerSecond is the expected number of placed pods per second; 0 if the rate does not depend on the cause.
	PerSecond float64 `json:"placedPerSecond,omitempty"`
	// AtLeast is set if PerSecond, or Saved without it, is a lower bound: because the capacity behind the cause was not
	// observed, or because the cause also delays what is counted for others.
	AtLeast bool `json:"atLeast,omitempty"`
	// Saved is by which share the mean time of a pod falls, if the rate stays the same.
	Saved float64 `json:"savedShare"`
	// Unknown is why nothing is predicted; empty if it is.
	Unknown string `json:"unknown,omitempty"`
}
