// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// countShortage counts a node by the resources that are still missing with all pods removed that may be evicted.
func (h *histogram) countShortage(sm *victim.Shortage) {
	for i := range sm.Needs {
		if sm.Needs[i].Lacks > 0 {
			h.count(sm.Needs[i].Reason)
		}
	}
	h.nodes++
}

// Reasons that are not those of a filter (upstream: preemption.go, default_preemption.go).
const (
	noVictims  = "No preemption victims found for incoming pod"
	notHelpful = "Preemption is not helpful for scheduling"
)

// histogram counts nodes by the reason why evictions do not help there.
type histogram struct {
	all    int            // number of nodes in the cluster
	nodes  int            // number of nodes that were tried
	counts map[string]int // reason -> nodes
	errors []string
}

func (h *histogram) begin(nodes int) {
	if h.counts == nil {
		h.counts = map[string]int{}
	}
	clear(h.counts)
	h.all, h.nodes, h.errors = nodes, 0, h.errors[:0]
}

func (h *histogram) count(reason string) { h.counts[reason]++ }

func (h *histogram) fail(message string) {
	h.nodes++
	h.errors = append(h.errors, message)
}

// message has the form of upstream's FitError. Nodes that were not tried have a reason of their own.
func (h *histogram) message() string {
	if rest := h.all - h.nodes; rest > 0 {
		h.counts[notHelpful] += rest
	}
	parts := make([]string, 0, len(h.counts))
	for reason, n := range h.counts { // order: parts are sorted below
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", h.all, strings.Join(parts, ", "))
}

// failure joins errors as upstream does (apimachinery: util/errors, Aggregate), in the order of the rows.
func (h *histogram) failure() string {
	var once []string
	for _, e := range h.errors {
		if !slices.Contains(once, e) {
			once = append(once, e)
		}
	}
	if len(once) == 1 {
		return once[0]
	}
	return "[" + strings.Join(once, ", ") + "]"
}

// MessagePrefix begins all messages about preemption, as upstream's do.
const MessagePrefix = "preemption: "
