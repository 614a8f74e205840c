// SPDX-License-Identifier: Apache-2.0

package text

import (
	"io"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

// shadowed is a report in which every line has something to say.
func shadowed() record.ShadowReport {
	scores := func(node string, fit, taints int64) *record.Candidate {
		return &record.Candidate{Node: node, Total: fit + taints, Scores: []record.PluginScore{
			{Plugin: "TaintToleration", Weighted: taints}, {Plugin: "NodeResourcesFit", Weighted: fit}}}
	}
	regret := record.ShadowRegret{Quantiles: record.Quantiles{Count: 1240, P90: 2, P99: 13, Max: 310},
		ByPlugin: []record.PluginRegret{
			{Plugin: "NodeResourcesFit", Pods: 33, Sum: 420}, {Plugin: "TaintToleration", Pods: 1, Sum: -5}}}
	r := record.ShadowReport{
		Scheduler: "default-scheduler", Profile: "ours", Started: now - 3600*record.Second, At: now, Synced: true,
		Nodes: 100,
		Pods:  record.ShadowPods{Judged: 1245, Unseen: 12, Unjudged: 1, Pending: 3},
		Agreement: record.ShadowAgreement{Pods: 1243, Same: 800, Tied: 400, Nominated: 6, Worse: 34, Rejected: 3,
			Regret: regret},
		Quiet: record.ShadowAgreement{Pods: 200, Same: 150, Tied: 50},
		RejectedByUs: record.ShadowDispute{Pods: 3, Nowhere: 1, Settled: 4, Open: 1, Reasons: []record.ShadowReason{
			{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 2}, {Reason: "other reasons", Pods: 1}}},
		RefusedByThem: record.ShadowDispute{Pods: 1, Settled: 2, Lost: 1},
		Latency: record.ShadowLatency{
			Ours:   record.Quantiles{Count: 1250, P50: 52.4e-6, P90: 166e-6, P99: 981e-6, Max: 2.48123e-3},
			Theirs: record.Quantiles{Count: 1200, P50: 11e-3, P90: 85.2e-3, P99: 1.21, Max: 61}},
		Examples: []record.ShadowExample{
			{Kind: record.ShadowRejected, Quiet: true, Judgement: record.Judgement{Pod: pod("big"),
				Match: record.Rejected, Plugin: "NodeResourcesFit",
				Reasons: []string{"Insufficient cpu", "Insufficient memory"},
				Theirs:  &record.Candidate{Node: "node-1"}}},
			{Kind: record.ShadowRejected, Judgement: record.Judgement{Pod: pod("odd"), Match: record.Rejected,
				Plugin: "TaintToleration", Feasible: 3,
				Reasons: []string{"node(s) had untolerated taint(s)"}, Theirs: &record.Candidate{Node: "node-2"},
				Ours: scores("node-3", 90, 300)}},
			{Kind: record.ShadowRefused, TheirMessage: "0/100 nodes are available: 100 node(s) were away.",
				Judgement: record.Judgement{Pod: pod("left"), Feasible: 1, Ours: &record.Candidate{Node: "node-4"}}},
		},
	}
	for i := range 4 {
		r.Examples = append(r.Examples, record.ShadowExample{Kind: record.ShadowWorse,
			Judgement: record.Judgement{Pod: pod("web"), Match: record.Worse,
				Regret: int64(310 - i), Cause: "TaintToleration", Ours: scores("node-5", 80, 300),
				Theirs: scores("node-6", 70+int64(i), 0)}})
	}
	return r
}

// TestShadowPages holds whole pages, as TestPages does.
func TestShadowPages(t *testing.T) {
	early := record.ShadowReport{Scheduler: "s", Profile: "s", Started: now - 2*record.Second, At: now}
	quiet := record.ShadowReport{Scheduler: "s", Profile: "s", Started: now - record.Second, At: now, Synced: true,
		Nodes: 1}
	for name, page := range map[string]func(w io.Writer) error{
		"shadow":       func(w io.Writer) error { return Shadow(w, shadowed(), false) },
		"shadow-wide":  func(w io.Writer) error { return Shadow(w, shadowed(), true) },
		"shadow-early": func(w io.Writer) error { return Shadow(w, early, false) },
		"shadow-empty": func(w io.Writer) error { return Shadow(w, quiet, false) },
	} {
		t.Run(name, func(t *testing.T) { holds(t, name, page) })
	}
	if Shadow(failing{}, shadowed(), true) == nil {
		t.Error("no error from a closed pipe")
	}
}
