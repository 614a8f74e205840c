// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// MemberRejection is why a member of a placed gang cannot keep its row: a plugin refuses to keep what it reserved.
type MemberRejection struct {
	Plugin, Reason string // no reason for an error
	Err            error
	Worded         bool // see plugin.Reserved
	Member, Before int  // Before members were accepted before it
	Node           string
}

// Text returns why the member is rejected.
func (r *MemberRejection) Text() string { return textOf(r.Reason, r.Err) }

// Keep lets plugins reserve that do so only for a placement that is kept, member by member. If one refuses, all is
// given back, in reverse order, and nothing of the placement is kept.
func (a *Attempt) Keep(trial *cluster.Trial) *MemberRejection {
	s := trial.Snapshot()
	for k, i := range a.Answer.Order {
		for _, h := range a.Answer.Holds[i] {
			later, is := h.Hold.(plugin.Deferred)
			if !is {
				continue
			}
			got := later.Keep(s)
			if got.Reject == "" && got.Err == nil {
				continue
			}
			for _, m := range slices.Backward(a.Answer.Order) {
				for _, h := range slices.Backward(a.Answer.Holds[m]) {
					h.Hold.Release(trial, false)
				}
			}
			return &MemberRejection{Plugin: cmp.Or(got.By, h.By), Reason: got.Reject, Err: got.Err, Worded: got.Worded,
				Member: i, Before: k, Node: s.NodeName(a.Answer.Nodes[i])}
		}
	}
	return nil
}

// Refused returns the attempt as one whose placement a plugin refused.
func (a Attempt) Refused(no MemberRejection) Attempt {
	a.Answer = Answer{
		Verdict: Unschedulable, Most: no.Before, Blocked: no.Member, Tried: a.Answer.Tried,
		Domains: a.Answer.Domains, Plugins: []string{no.Plugin},
	}
	if no.Err != nil {
		a.Answer.Verdict = Failed
		a.Answer.Err = errors.New(plugin.ErrorText("Reserve", no.Plugin, no.Err, no.Worded))
		return a
	}
	a.Answer.Why = place.Rejection{
		Plugins: []string{no.Plugin}, Message: fmt.Sprintf("0/1 nodes are available: 1 %s.", no.Reason),
		Reasons: []record.Reason{{Plugin: no.Plugin, Reason: no.Reason, Nodes: 1, Examples: []string{no.Node}}},
	}
	return a
}
