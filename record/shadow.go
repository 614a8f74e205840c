// SPDX-License-Identifier: Apache-2.0

package record

// Match is the comparison of the node that another scheduler chose with kumiki's choice.
type Match string

// The results of the comparison.
const (
	SameNode  Match = "same"      // the node that kumiki would choose too
	Tied      Match = "tied"      // another node of the same, best score: ties are broken at random on both sides
	Nominated Match = "nominated" // the pod was nominated there, which comes before scores on both sides
	Worse     Match = "worse"     // it fits, but another node has a better score
	Rejected  Match = "rejected"  // kumiki's filters reject the node
	Unjudged  Match = "unjudged"  // the comparison met an error, or no node was named
)

// Judgement compares one choice of another scheduler with kumiki's, on the state at the time of the comparison.
type Judgement struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Pod      PodRef `json:"pod"`
	Match    Match  `json:"match"`
	Nodes    int    `json:"nodes"`
	// Feasible is the number of nodes that fit by kumiki's filters; Tied the number that share the best score.
	Feasible int `json:"feasible"`
	Tied     int `json:"tied,omitempty"`
	// Ours is kumiki's choice; nil if no node fits. Theirs is the other scheduler's choice; without scores unless it
	// fits. There are scores by plugin if two nodes or more fit.
	Ours   *Candidate `json:"ours,omitempty"`
	Theirs *Candidate `json:"theirs,omitempty"`
	// Regret is by how much the total of Theirs is below the best, if Match is Worse or Nominated.
	Regret int64 `json:"regret,omitempty"`
	// Cause is the plugin that contributes most to Regret.
	Cause string `json:"cause,omitempty"`
	// Plugin and Reasons are why the other scheduler's node does not fit.
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// Message is what kumiki would write into the PodScheduled condition if no node fits, or the error of Unjudged.
	Message string `json:"message,omitempty"`
}

// ShadowReport is what a shadow instance has observed of the scheduler that it follows, since it started.
type ShadowReport struct {
	// Scheduler is the scheduler name whose binds were judged; Profile is the kumiki profile that judged them.
	Scheduler string `json:"scheduler"`
	Profile   string `json:"profile"`
	Started   Time   `json:"started"`
	At        Time   `json:"at"`
	// Synced: the initial lists are complete; nothing is judged before.
	Synced bool       `json:"synced"`
	Nodes  int        `json:"nodes"`
	Pods   ShadowPods `json:"pods"`
	// Agreement is over all pods that were judged. Quiet is over those only for which nothing else happened between
	// the time when the pod was observed pending and the time when it was observed bound, and no other pod was being
	// scheduled: then both schedulers certainly decided on the same cluster state. In a burst they do not: binds are
	// observed in the order in which they were written, which is not quite the order in which they were decided.
	Agreement ShadowAgreement `json:"agreement"`
	Quiet     ShadowAgreement `json:"quiet"`
	// RejectedByUs are nodes that kumiki's filters reject; RefusedByThem are pods that the other scheduler reports as
	// unschedulable while a node fits for kumiki.
	RejectedByUs  ShadowDispute `json:"rejectedByUs"`
	RefusedByThem ShadowDispute `json:"refusedByThem"`
	Latency       ShadowLatency `json:"latency"`
	// Examples are the worst cases, worst first.
	Examples []ShadowExample `json:"examples,omitempty"`
}

// ShadowPods counts pods of the followed scheduler.
type ShadowPods struct {
	// Judged binds are those of pods that were observed pending before. Disputes that are open, settled or lost are
	// among them and not in ShadowReport.Agreement.
	Judged int `json:"judged"`
	// Unseen pods were first observed when they were bound: created with spec.nodeName, or bound before the watch
	// event.
	Unseen int `json:"unseen"`
	// Unjudged binds met an error in the comparison.
	Unjudged int `json:"unjudged"`
	// Pending pods wait now.
	Pending int `json:"pending"`
}

// ShadowAgreement compares choices. Invariant: Pods = Same + Tied + Nominated + Worse + Rejected.
type ShadowAgreement struct {
	Pods      int `json:"pods"`
	Same      int `json:"same"`
	Tied      int `json:"tied"`
	Nominated int `json:"nominated"`
	Worse     int `json:"worse"`
	Rejected  int `json:"rejected"`
	// Share is (Same + Tied + Nominated) / Pods; 0 without pods.
	Share float64 `json:"share"`
	// Regret is by how much the total of the other scheduler's node is below the best, over the pods whose node fits;
	// 0 for those on which both agree, nominated ones included. Kumiki's regret is 0 by construction.
	Regret ShadowRegret `json:"regret"`
}

// ShadowRegret is a distribution of score differences.
type ShadowRegret struct {
	Quantiles
	// ByPlugin lists the plugins that score another node higher, those with the most regret first.
	ByPlugin []PluginRegret `json:"byPlugin,omitempty"`
}

// PluginRegret is one plugin's share of the regret.
type PluginRegret struct {
	Plugin string `json:"plugin"`
	// Pods is the number of pods to whose regret it contributes most.
	Pods int `json:"pods"`
	// Sum adds up, over all pods with regret, by how much the plugin scores kumiki's node higher than the other;
	// negative if it prefers the other.
	Sum int64 `json:"sum"`
}

// ShadowDispute counts the pods for which the two schedulers disagree on what fits. A case is open until it has been
// compared again for some seconds: by then both schedulers have observed the same changes.
type ShadowDispute struct {
	// Pods is the number of cases that persisted.
	Pods int `json:"pods"`
	// Nowhere is the number of Pods for which no node at all fits by kumiki's filters. Only in RejectedByUs.
	Nowhere int `json:"nowhere"`
	// Settled is the number of cases that disappeared: the other scheduler had decided on a slightly different state.
	Settled int `json:"settled"`
	Open    int `json:"open"`
	// Lost cases could not be compared again: the pod was gone, or too many were open at once.
	Lost int `json:"lost,omitempty"`
	// Reasons count Pods by kumiki's reason, most pods first. Only in RejectedByUs.
	Reasons []ShadowReason `json:"reasons,omitempty"`
}

// ShadowReason counts pods whose node kumiki rejects for one reason.
type ShadowReason struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// ShadowLatency is in seconds.
type ShadowLatency struct {
	// Ours is how long the engine took to judge a pod, which is a whole decision and a little more.
	Ours Quantiles `json:"ours"`
	// Theirs is from the time when a pod was observed pending to the time when it was observed bound, for pods bound
	// at the first try: queueing, deciding, binding and both watch delays.
	Theirs Quantiles `json:"theirs"`
}

// Quantiles describe a distribution; quantiles have an error of 0.4 % at most, Max is exact.
type Quantiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// ShadowKind is what an example shows.
type ShadowKind string

// The kinds of examples, worst first.
const (
	ShadowRejected ShadowKind = "rejectedByUs"
	ShadowRefused  ShadowKind = "refusedByThem"
	ShadowWorse    ShadowKind = "worse"
)

// ShadowExample is one case.
type ShadowExample struct {
	Kind ShadowKind `json:"kind"`
	// Quiet: both schedulers certainly decided on the same cluster state; see ShadowReport.Quiet.
	Quiet bool `json:"quiet"`
	// Judgement is the first one.
	Judgement Judgement `json:"judgement"`
	// TheirMessage is the PodScheduled condition of a pod that the other scheduler rejects.
	TheirMessage string `json:"theirMessage,omitempty"`
}
