// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// answer is what was found for a pod on a row that fits.
type answer struct {
	out     *outcome // what the allocator found; nil when nothing is known of the row
	variant *variant // of the extended claim; nil when the node needs none
}

// asker puts the question to the allocator: the claims to allocate, with this variant of the extended one, on this
// node.
type asker func(n cluster.NodeIdx, node *cluster.Node, v *variant) (*outcome, error)

// Plain is the verdict on one node. Supposed pods make no difference: devices are held by claims, not by pods.
func (pr *prepared) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return pr.judge(v.Row, v.Node, pr.askWhole)
}

// Column gives the verdict on rows, up to the first one where it fails.
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

// judge decides about one node. As upstream does, it tells what the allocator says before what allocated claims say.
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

// outOfReach reports whether some allocated claim cannot be used on the node, and remembers which.
func (pr *prepared) outOfReach(n cluster.NodeIdx, node *cluster.Node) bool {
	any := false
	for i := range pr.claims {
		c := &pr.claims[i]
		if c.reach != nil && !c.reach.Match(pr.pl.apiNode(n, node)) || c.stuck {
			pr.unavailable[i] = true
			any = true
		}
	}
	return any
}

// code is the code of a reason. No eviction helps against any of them.
func (pr *prepared) code(reason string) plugin.Code {
	i := slices.Index(pr.texts, reason)
	if i < 0 {
		i = len(pr.texts)
		pr.texts = append(pr.texts, reason)
	}
	return plugin.Code(i+1) | plugin.Unresolvable
}

// Reasons is the one text of a code.
func (pr *prepared) Reasons(c plugin.Code) []string {
	return []string{pr.texts[(c&plugin.CodeBits)-1]}
}

// Failed is the error that fails the attempt: a broken selector, say, or a search that took too long.
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

// found is what is remembered of a row.
func (pr *prepared) found(n cluster.NodeIdx) answer {
	if int(n) < len(pr.answers) {
		return pr.answers[n]
	}
	return answer{}
}

// nodeCopy is a node as the allocator and node selectors take it.
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

// apiNode is a node with what selectors read of it.
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
