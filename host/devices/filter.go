// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// answer is the result for a pod on a row that fits.
type answer struct {
	out     *outcome // the allocator's result; nil if nothing is known about the row
	variant *variant // of the extended claim; nil if the node needs none
}

// asker queries the allocator for the claims to allocate, with this variant of the extended one, on this node.
type asker func(n cluster.NodeIdx, node *cluster.Node, v *variant) (*outcome, error)

// Plain returns the verdict on one node. Supposed pods make no difference: claims hold devices, not pods.
func (pr *prepared) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return pr.judge(v.Row, v.Node, pr.askWhole)
}

// Column writes the verdicts on rows, up to the first failure.
func (pr *prepared) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	pr.failed = nil
	for n := lo; n < hi && pr.failed == nil; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		node := s.Node(n)
		if node == nil {
			continue
		}
		if code := pr.judge(n, node, pr.askRemembered); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

// judge decides about one node. As in upstream, the allocator's reason precedes that of allocated claims.
func (pr *prepared) judge(n cluster.NodeIdx, node *cluster.Node, ask asker) plugin.Code {
	pr.forget(n)
	pr.failed = nil
	var v *variant
	if pr.extended != nil {
		onlyExtended := len(pr.claims) == 1
		var reason string
		if v, reason = pr.extended.on(pr.pod, node, onlyExtended); reason != "" {
			return pr.code(reason)
		}
		if v == nil && onlyExtended {
			return plugin.Fit
		}
	}
	var found *outcome
	if pr.allocate {
		var err error
		if found, err = ask(n, node, v); err != nil {
			pr.failed = err
			return pr.code(err.Error())
		}
		if !found.fits {
			return pr.code(found.reason)
		}
	}
	if pr.outOfReach(n, node) {
		return pr.code("resourceclaim not available on the node")
	}
	if pr.allocate {
		pr.remember(n, answer{found, v})
	}
	return plugin.Fit
}

// optionalOperations is the feature that a node declares if devices may skip operations on it.
const optionalOperations = "DRAOptionalNodeOperations"

// outOfReach reports whether some allocated claim cannot be used on the node, and records which.
func (pr *prepared) outOfReach(n cluster.NodeIdx, node *cluster.Node) bool {
	any := false
	for i := range pr.claims {
		c := &pr.claims[i]
		if c.reach != nil && !c.reach.Match(pr.pl.apiNode(n, node)) || c.stuck ||
			c.skips && !slices.Contains(node.Features, optionalOperations) {
			pr.unavailable[i] = true
			any = true
		}
	}
	return any
}

// code returns the code of a reason. No eviction helps against any of them.
func (pr *prepared) code(reason string) plugin.Code {
	i := slices.Index(pr.texts, reason)
	if i < 0 {
		i = len(pr.texts)
		pr.texts = append(pr.texts, reason)
	}
	return plugin.Code(i+1) | plugin.Unresolvable
}

// Reasons returns the text of a code.
func (pr *prepared) Reasons(c plugin.Code) []string {
	return []string{pr.texts[(c&plugin.CodeBits)-1]}
}

// Failed returns the error that fails the attempt: for example an invalid selector, or a search that took too long.
func (pr *prepared) Failed() error { return pr.failed }

func (pr *prepared) remember(n cluster.NodeIdx, a answer) {
	for int(n) >= len(pr.answers) {
		pr.answers = append(pr.answers, answer{})
	}
	pr.answers[n] = a
}

func (pr *prepared) forget(n cluster.NodeIdx) {
	if int(n) < len(pr.answers) {
		pr.answers[n] = answer{}
	}
}

// found returns what is cached for a row.
func (pr *prepared) found(n cluster.NodeIdx) answer {
	if int(n) < len(pr.answers) {
		return pr.answers[n]
	}
	return answer{}
}

// nodeCopy is a node in the form that the allocator and node selectors read.
type nodeCopy struct {
	of  *cluster.Node
	api *v1.Node
	// reach is which selectors of shared slices match (shared.go), as of reachAt; 0 for never.
	reach   string
	reachAt uint64
}

func asNode(node *cluster.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
}

// apiNode returns a node with the fields that selectors read.
func (pl *Plugin) apiNode(n cluster.NodeIdx, node *cluster.Node) *v1.Node {
	for int(n) >= len(pl.nodes) {
		pl.nodes = append(pl.nodes, nodeCopy{})
	}
	c := &pl.nodes[n]
	if c.of != node {
		*c = nodeCopy{of: node, api: asNode(node)}
	}
	return c.api
}
