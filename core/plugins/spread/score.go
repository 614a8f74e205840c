// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// spreadScore holds the constraints that should hold. A node's raw score is the sum over constraints of
// pods*log(values+2) + maxSkew-1, rounded; pods are those that count on the node's value of the key, values are
// those of the nodes that fit. Hosts are counted on the node itself and numbered by the nodes that fit, whatever
// the policies. The node with the fewest gets the most.
type spreadScore struct {
	plan      *spreadPlan
	namespace string
	nodes     *spreadNodes
	whole     bool         // every row that fits has a part
	parts     []spreadPart // by soft constraint
}

// spreadPart is what a constraint adds to a score.
type spreadPart struct {
	c        *spreadConstraint
	topology *cluster.Topology
	weight   float64
	byValue  []float64 // value id -> addend; nil for hosts
	rows     []int32   // for hosts, row -> pods; nil where none count
	isHost   bool
}

// spreadLeftOut stands for a node that has no part in scoring while scores are normalised. A score of just this value
// is taken for one, as upstream does.
const spreadLeftOut int64 = -1

func newSpreadScore(s cluster.Snapshot, plan *spreadPlan, namespace string, fit []cluster.NodeIdx,
	sizes []int) *spreadScore {
	f := &spreadScore{plan: plan, namespace: namespace, nodes: plan.scored(s)}
	f.parts = make([]spreadPart, len(plan.soft))
	all := len(fit)
	if sizes != nil {
		all = 0
		for _, size := range sizes {
			all += size
		}
	}
	ranked := all
	if f.nodes.count != s.Nodes() {
		ranked = 0
		for i, n := range fit {
			switch {
			case !f.nodes.has(n):
			case sizes != nil:
				ranked += sizes[i]
			default:
				ranked++
			}
		}
	}
	f.whole = ranked == all
	for i := range plan.soft {
		part := &f.parts[i]
		part.c = &plan.soft[i]
		part.topology = s.Topology(part.c.key)
		if part.isHost = part.c.key == v1.LabelHostname; part.isHost {
			size := ranked
			part.weight = spreadWeight(size)
			if part.c.counted {
				part.rows = s.Counter(part.c.counts).Rows()
			}
			continue
		}
		f.byValue(s, part, fit)
	}
	return f
}

// spreadWeight keeps the counts of keys with few values from drowning beside those with many.
func spreadWeight(values int) float64 {
	return math.Log(float64(values + 2))
}

// byValue fills in what each value adds.
func (f *spreadScore) byValue(s cluster.Snapshot, part *spreadPart, fit []cluster.NodeIdx) {
	// Where nodes need not have the key, upstream takes those without for nodes with the empty value. They add one to
	// the number of values then, and their pods to the empty value if there is one.
	column, size := part.topology.Column(), part.topology.Size()
	empty := part.topology.ID("")
	if empty == cluster.NoValue {
		empty = int32(size)
	}
	most := part.topology.Domains() // that can be seen
	if part.topology.Nodes() != s.Nodes() && part.topology.ID("") == cluster.NoValue {
		most++
	}
	seen, values := make([]bool, size+1), 0
	for _, n := range fit {
		if !f.whole && !f.nodes.has(n) {
			continue
		}
		id := column[n]
		if id == cluster.NoValue {
			id = empty
		}
		if !seen[id] {
			seen[id] = true
			if values++; values == most {
				break
			}
		}
	}
	part.weight = spreadWeight(values)
	d := f.nodes.domains(s, part.c)
	if int(empty) < size && part.c.counted {
		f.addKeyless(s, part, &d, empty)
	}
	part.byValue = make([]float64, size)
	for id := range part.byValue {
		part.byValue[id] = part.of(d.pods[id])
	}
}

// addKeyless counts the pods on nodes without the key to the empty value.
func (f *spreadScore) addKeyless(s cluster.Snapshot, part *spreadPart, d *domains, empty int32) {
	d.own()
	words, _ := f.nodes.of(s, part.c)
	rows, column := s.Counter(part.c.counts).Rows(), part.topology.Column()
	eachRow(words, func(n int) {
		if column[n] == cluster.NoValue {
			d.pods[empty] += rows[n]
		}
	})
}

// of is what a number of pods adds.
func (part *spreadPart) of(pods int32) float64 {
	slack := part.c.maxSkew - 1
	return float64(float64(pods)*part.weight) + float64(slack)
}

func (f *spreadScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	if f.leftOut(v.Row) {
		return 0
	}
	var score float64
	for i := range f.parts {
		part := &f.parts[i]
		value, ok := v.Node.Labels[part.c.key]
		if !ok {
			continue
		}
		if !part.isHost {
			score += part.byValue[part.topology.ID(value)]
			continue
		}
		var pods int32
		for _, other := range v.Pods {
			if part.c.counted && !other.Terminating && other.Namespace == f.namespace &&
				part.c.selector.Matches(labels.Set(other.Spec.Labels)) {
				pods++
			}
		}
		score += part.of(pods)
	}
	return int64(math.Round(score))
}

func (f *spreadScore) leftOut(n cluster.NodeIdx) bool {
	return !f.whole && !f.nodes.has(n)
}

func (f *spreadScore) Rows(_ cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	for i, n := range fit {
		if f.leftOut(n) {
			out[i] = 0
			continue
		}
		var score float64
		for k := range f.parts {
			part := &f.parts[k]
			id := part.topology.Column()[n]
			switch {
			case id == cluster.NoValue:
			case !part.isHost:
				score += part.byValue[id]
			case part.rows == nil:
				score += part.of(0)
			default:
				score += part.of(part.rows[n])
			}
		}
		out[i] = int64(math.Round(score))
	}
}

// Normalize turns the order round and scales to the largest raw score; nodes that have no part get 0.
func (f *spreadScore) Normalize(_ cluster.Snapshot, fit []cluster.NodeIdx, scores []int64) {
	least, greatest := int64(math.MaxInt64), int64(0)
	for i, n := range fit {
		if f.leftOut(n) {
			scores[i] = spreadLeftOut
			continue
		}
		least, greatest = min(least, scores[i]), max(greatest, scores[i])
	}
	for i, raw := range scores {
		switch {
		case raw == spreadLeftOut:
			scores[i] = 0
		case greatest == 0:
			scores[i] = plugin.MaxScore
		default:
			scores[i] = plugin.MaxScore * (greatest + least - raw) / greatest
		}
	}
}
