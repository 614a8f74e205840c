// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// question returns the request about nodes: their names, if the extender caches nodes itself, or else whole nodes.
func (c *client) question(pod *v1.Pod, nodes []string, objects Objects) (*extenderv1.ExtenderArgs, error) {
	if c.NodeCacheCapable {
		return &extenderv1.ExtenderArgs{Pod: pod, NodeNames: &nodes}, nil
	}
	list := &v1.NodeList{Items: make([]v1.Node, 0, len(nodes))}
	for _, name := range nodes {
		node := objects.Node(name)
		if node == nil {
			return nil, fmt.Errorf("asking extender %q about node %q: the node is not known", c.URLPrefix, name)
		}
		list.Items = append(list.Items, *node)
	}
	return &extenderv1.ExtenderArgs{Pod: pod, Nodes: list}, nil
}

// Filter calls the extenders in turn, while a node is left. A node that an extender drops without a reason has an
// empty reason, which upstream's message does not count, and counts as one on which evictions do not help.
func (x *Extenders) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	left := nodes
	reasons := map[string]place.ForeignRejection{}  // node -> the reason of the last extender that rejected it
	rejected := map[string]place.ForeignRejection{} // node -> why it is rejected
	for _, c := range x.clients {
		if len(left) == 0 {
			break
		}
		if c.FilterVerb == "" || !c.takes(p) {
			continue
		}
		kept, err := x.filter(c, p, left, reasons)
		if err != nil {
			if c.Ignorable {
				x.ignored(Ignored{c.URLPrefix, c.FilterVerb, p.Ref(), err})
				continue
			}
			return nil, err
		}
		passed := make(map[string]bool, len(kept)) // node -> passed
		for _, name := range kept {
			passed[name] = true
		}
		for _, name := range left {
			if passed[name] {
				continue
			}
			why, ok := reasons[name]
			if !ok {
				why = place.ForeignRejection{By: c.URLPrefix, Unresolvable: true}
			}
			rejected[name] = why
		}
		left = kept
	}
	return rejected, nil
}

// question returns the request about a pod and nodes.
func (x *Extenders) question(c *client, p *cluster.Pod, nodes []string) (*extenderv1.ExtenderArgs, error) {
	pod, err := x.pod(p.Ref())
	if err != nil {
		return nil, err
	}
	return c.question(pod, nodes, x.objects)
}

// filter calls one extender, and returns the nodes that it keeps, each node once, in its order.
func (x *Extenders) filter(c *client, p *cluster.Pod, nodes []string,
	reasons map[string]place.ForeignRejection) (kept []string, err error) {
	question, err := x.question(c, p, nodes)
	if err != nil {
		return nil, err
	}
	var answer extenderv1.ExtenderFilterResult
	if err := c.call(x.ctx, c.FilterVerb, question, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	var names []string
	if c.NodeCacheCapable && answer.NodeNames != nil {
		names = *answer.NodeNames
	} else if answer.Nodes != nil {
		for i := range answer.Nodes.Items {
			names = append(names, answer.Nodes.Items[i].Name)
		}
	}
	open := make(map[string]bool, len(nodes)) // node -> was in the request and has not been kept yet
	for _, name := range nodes {
		open[name] = true
	}
	for _, name := range names {
		first, asked := open[name]
		if !asked {
			return nil, fmt.Errorf("extender %q claims a filtered node %q which is not found in the input node list",
				c.URLPrefix, name)
		}
		if first {
			open[name] = false
			kept = append(kept, name)
		}
	}
	for name := range open { // order: each node has its own entry
		if reason, ok := answer.FailedAndUnresolvableNodes[name]; ok {
			reasons[name] = place.ForeignRejection{By: c.URLPrefix, Reason: reason, Unresolvable: true}
		} else if reason, ok := answer.FailedNodes[name]; ok {
			reasons[name] = place.ForeignRejection{By: c.URLPrefix, Reason: reason}
		}
	}
	return kept, nil
}

// Score lets the extenders rank nodes. One that fails gives no score.
func (x *Extenders) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	var scores []place.ForeignScore
	for _, c := range x.clients {
		if c.PrioritizeVerb == "" || !c.takes(p) {
			continue
		}
		added, err := x.score(x.ctx, c, p, nodes)
		if err != nil {
			x.ignored(Ignored{c.URLPrefix, c.PrioritizeVerb, p.Ref(), err})
			continue
		}
		scores = append(scores, place.ForeignScore{By: c.URLPrefix, Added: added})
	}
	return scores
}

// scale converts the scores of extenders, which go up to 10, to the range of plugins.
const scale = plugin.MaxScore / extenderv1.MaxExtenderPriority

// score calls one extender. A node that is named twice gets both scores, a node outside the request none.
func (x *Extenders) score(ctx context.Context, c *client, p *cluster.Pod, nodes []string) ([]int64, error) {
	question, err := x.question(c, p, nodes)
	if err != nil {
		return nil, err
	}
	var answer extenderv1.HostPriorityList
	if err := c.call(ctx, c.PrioritizeVerb, question, &answer); err != nil {
		return nil, err
	}
	at := make(map[string]int, len(nodes)) // node -> position
	for i, name := range nodes {
		at[name] = i
	}
	added := make([]int64, len(nodes))
	for _, given := range answer {
		if i, asked := at[given.Host]; asked {
			added[i] = bound(added[i] + bound(times(given.Score, times(c.Weight, scale))))
		}
	}
	return added, nil
}

// mostAdded is the maximum magnitude of a score from one extender: totals of many extenders do not overflow then.
const mostAdded = int64(1) << 52

func bound(v int64) int64 { return max(-mostAdded, min(mostAdded, v)) }

// times multiplies; it saturates at the limits of int64.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	switch negative := (a < 0) != (b < 0); {
	case hi != 0 || lo > math.MaxInt64:
		if negative {
			return math.MinInt64
		}
		return math.MaxInt64
	case negative:
		return -int64(lo)
	default:
		return int64(lo)
	}
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
