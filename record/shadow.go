// SPDX-License-Identifier: Apache-2.0

package record

// Match is how the node that another scheduler chose compares with what we would choose.
type Match string

// The matches.
const (
	SameNode  Match = "same"      // the node that our draw would choose too
	Tied      Match = "tied"      // another node of the same, best score: ties are broken at random on both sides
	Nominated Match = "nominated" // the pod was nominated there, which comes before scores on both sides
	Worse     Match = "worse"     // it fits, but another node has a better score
	Rejected  Match = "rejected"  // our filters do not let the pod go there
	Unjudged  Match = "unjudged"  // judging met an error, or no node was named
)

// Judgement compares one choice of another scheduler with ours, on the state at the moment of judging.
type Judgement struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Pod      PodRef `json:"pod"`
	Match    Match  `json:"match"`
	Nodes    int    `json:"nodes"`
	// Feasible is how many nodes fit, by our filters; Tied is how many share the best score.
	Feasible int `json:"feasible"`
	Tied     int `json:"tied,omitempty"`
	// Ours is what we would choose; nil when no node fits. Theirs is the other scheduler's choice; without scores
	// unless it fits. Scores per plugin are there when two nodes or more fit.
	Ours   *Candidate `json:"ours,omitempty"`
	Theirs *Candidate `json:"theirs,omitempty"`
	// Regret is by how much the total of Theirs is below the best, when Match is Worse or Nominated.
	Regret int64 `json:"regret,omitempty"`
	// Cause is the plugin that contributes most to Regret.
	Cause string `json:"cause,omitempty"`
	// Plugin and Reasons say why their node does not fit.
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// Message is what we would write into the PodScheduled condition when no node fits, or the error that Unjudged met.
	Message string `json:"message,omitempty"`
}

// ShadowReport is what a shadow has seen of the scheduler that it follows, since it started.
type ShadowReport struct {
	// Scheduler is the scheduler name whose binds were judged; Profile is the profile of ours that judged them.
	Scheduler string `json:"scheduler"`
	Profile   string `json:"profile"`
	Started   Time   `json:"started"`
	At        Time   `json:"at"`
	// Synced tells that the initial lists are in; nothing is judged before.
	Synced bool       `json:"synced"`
	Nodes  int        `json:"nodes"`
	Pods   ShadowPods `json:"pods"`
	// Agreement is over all pods that were judged. Quiet is over those alone in whose case nothing else happened
	// between the moment when the pod was seen pending and the moment when it was seen bound, and no other pod was on
	// its way: there both schedulers certainly looked at the same cluster. In a burst they do not: binds are seen in
	// the order in which they were written, which is not quite the order in which they were decided.
	Agreement ShadowAgreement `json:"agreement"`
	Quiet     ShadowAgreement `json:"quiet"`
	// RejectedByUs are picks that our filters do not allow; RefusedByThem are pods that they call unschedulable while
	// we see a node that fits.
	RejectedByUs  ShadowDispute `json:"rejectedByUs"`
	RefusedByThem ShadowDispute `json:"refusedByThem"`
	Latency       ShadowLatency `json:"latency"`
	// Examples are the worst cases, worst first.
	Examples []ShadowExample `json:"examples,omitempty"`
}

// ShadowPods counts pods of the scheduler that is followed.
type ShadowPods struct {
	// Judged binds are those of pods that were seen pending before. Disputes that are open, settled or lost are among
	// them and not in ShadowReport.Agreement.
	Judged int `json:"judged"`
	// Unseen pods were first seen when they were bound: made with spec.nodeName, or bound faster than they were told.
	Unseen int `json:"unseen"`
	// Unjudged binds met an error while they were judged.
	Unjudged int `json:"unjudged"`
	// Pending pods wait now.
	Pending int `json:"pending"`
}

// ShadowAgreement compares picks. Pods = Same + Tied + Nominated + Worse + Rejected.
type ShadowAgreement struct {
	Pods      int `json:"pods"`
	Same      int `json:"same"`
	Tied      int `json:"tied"`
	Nominated int `json:"nominated"`
	Worse     int `json:"worse"`
	Rejected  int `json:"rejected"`
	// Share is (Same + Tied + Nominated) / Pods; 0 without pods.
	Share float64 `json:"share"`
	// Regret is by how much the total of their node is below the best, over the pods whose node fits; 0 for those on
	// which we agree, nominated ones included. Ours is 0 by construction.
	Regret ShadowRegret `json:"regret"`
}

// ShadowRegret is a distribution of score differences.
type ShadowRegret struct {
	Quantiles
	// ByPlugin tells which plugins see a better node than theirs, those with the most regret first.
	ByPlugin []PluginRegret `json:"byPlugin,omitempty"`
}

// PluginRegret is one plugin's part in the regret.
type PluginRegret struct {
	Plugin string `json:"plugin"`
	// Pods is for how many pods it contributes most.
	Pods int `json:"pods"`
	// Sum adds up, over all pods with regret, by how much it scores our node higher than theirs; negative when it
	// prefers theirs.
	Sum int64 `json:"sum"`
}

// ShadowDispute counts the pods about which the two schedulers are not of one opinion on what fits. A case is open
// until it has been looked at again for some seconds: what is in flight on one side and unseen on the other settles
// by then.
type ShadowDispute struct {
	// Pods are cases that stayed.
	Pods int `json:"pods"`
	// Nowhere counts those of Pods for which no node at all fits by our filters. Only in RejectedByUs.
	Nowhere int `json:"nowhere"`
	// Settled are cases that went away: the other scheduler had looked at a slightly other state.
	Settled int `json:"settled"`
	Open    int `json:"open"`
	// Lost cases could not be looked at again: the pod was gone, or too many were open at once.
	Lost int `json:"lost,omitempty"`
	// Reasons count Pods by our reason, most pods first. Only in RejectedByUs.
	Reasons []ShadowReason `json:"reasons,omitempty"`
}

// ShadowReason counts pods whose node we reject for one reason.
type ShadowReason struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// ShadowLatency is in seconds.
type ShadowLatency struct {
	// Ours is how long our engine took to judge a pod, which is a whole decision and a little more.
	Ours Quantiles `json:"ours"`
	// Theirs is from the moment when a pod was seen pending to the moment when it was seen bound, for pods bound at the
	// first try: queueing, deciding, binding and both watch delays.
	Theirs Quantiles `json:"theirs"`
}

// Quantiles describe a distribution; quantiles are off by 0.4 % at most, Max is exact.
type Quantiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// ShadowKind says what an example shows.
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
	// Quiet tells that both schedulers certainly looked at the same cluster; see ShadowReport.Quiet.
	Quiet bool `json:"quiet"`
	// Judgement is the first one.
	Judgement Judgement `json:"judgement"`
	// TheirMessage is the PodScheduled condition of a pod that they refuse.
	TheirMessage string `json:"theirMessage,omitempty"`
}
