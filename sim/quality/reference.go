// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"math"
	"math/rand"
	"strings"
)

// maxGPUs is the most GPUs of a node of openb.
const maxGPUs = 8

// openbState is what is free on a node, for the reference policies.
type openbState struct {
	cpu, memory int64
	free        [maxGPUs]int64 // thousandths of each GPU
	gpus        int
	model       string
}

func (n *openbState) allows(s *OpenbShape) bool {
	if s.Models == "" || s.GPUs == 0 {
		return true
	}
	for models := s.Models; models != ""; {
		var one string
		if one, models, _ = strings.Cut(models, "|"); one == n.model {
			return true
		}
	}
	return false
}

// fits reports whether the node has capacity for a pod.
func (n *openbState) fits(s *OpenbShape) bool {
	return n.cpu >= s.CPU && n.memory >= s.Memory && n.allows(s) && n.holds(s)
}

// holds reports whether enough GPUs have capacity for a pod.
func (n *openbState) holds(s *OpenbShape) bool {
	enough := 0
	for _, free := range n.free[:n.gpus] {
		if free >= s.Milli {
			enough++
		}
	}
	return enough >= s.GPUs
}

// take takes the capacity of a pod: of a share, on the given GPU, of whole GPUs, on the first ones that are free.
func (n *openbState) take(s *OpenbShape, gpu int) {
	n.cpu -= s.CPU
	n.memory -= s.Memory
	if s.GPUs == 1 && s.Milli < WholeGPU {
		n.free[gpu] -= s.Milli
		return
	}
	for k, left := 0, s.GPUs; left > 0; k++ {
		if n.free[k] >= s.Milli {
			n.free[k] -= s.Milli
			left--
		}
	}
}

// choose returns the GPUs that take takes.
func (n *openbState) choose(s *OpenbShape, gpu int) (gpus []int) {
	if s.GPUs == 1 && s.Milli < WholeGPU {
		return []int{gpu}
	}
	for k := 0; len(gpus) < s.GPUs; k++ {
		if n.free[k] >= s.Milli {
			gpus = append(gpus, k)
		}
	}
	return gpus
}

// release gives the capacity of a pod back.
func (n *openbState) release(s *OpenbShape, gpus []int) {
	n.cpu += s.CPU
	n.memory += s.Memory
	for _, k := range gpus {
		n.free[k] += s.Milli
	}
}

// Policy scores a node that a pod fits: the highest score wins. gpu is the one on which a share is placed.
type Policy func(n *openbState, s *OpenbShape) (score int64, gpu int)

// tightest returns the GPU with the least free capacity that is enough for a share.
func (n *openbState) tightest(s *OpenbShape) (gpu int) {
	gpu = -1
	for i, free := range n.free[:n.gpus] {
		if free >= s.Milli && (gpu < 0 || free < n.free[gpu]) {
			gpu = i
		}
	}
	return max(gpu, 0)
}

// The largest nodes, by which the paper's policies normalise.
const (
	mostCPU = 128000
	mostGPU = 8000
)

// BestFit is the paper's policy of the name: the least that is left of CPU and GPU, each as a share of the largest
// node, in percent.
func BestFit(n *openbState, s *OpenbShape) (score int64, gpu int) {
	var free int64
	for _, f := range n.free[:n.gpus] {
		free += f
	}
	left := 0.5*float64(n.cpu-s.CPU)/mostCPU + 0.5*float64(free-s.GPUMilli())/mostGPU
	return int64((1 - left) * 100), n.tightest(s)
}

// FGD returns the paper's policy: the placement after which the least is fragmented, for the mix of shapes of the
// whole trace. A share is tried on each GPU.
func (o *Openb) FGD() Policy {
	typical := o.typicalShapes()
	return func(n *openbState, s *OpenbShape) (score int64, gpu int) {
		before := fragmentation(n, typical)
		value := func(gpu int) int64 {
			after := *n
			after.take(s, gpu)
			return int64(100 / (1 + math.Exp((fragmentation(&after, typical)-before)/1000)))
		}
		if s.GPUs != 1 || s.Milli == WholeGPU {
			return value(0), 0
		}
		score = -1
		for i, free := range n.free[:n.gpus] {
			if free < s.Milli || i > 0 && free == n.free[i-1] {
				continue
			}
			if v := value(i); v > score {
				score, gpu = v, i
			}
		}
		return score, gpu
	}
}

// emptyStates returns the nodes without pods.
func emptyStates(o *Openb) []openbState {
	nodes := make([]openbState, len(o.Nodes))
	for i, n := range o.Nodes {
		nodes[i] = openbState{cpu: n.CPU, memory: n.Memory, gpus: n.GPUs, model: n.Model}
		for k := range n.GPUs {
			nodes[i].free[k] = WholeGPU
		}
	}
	return nodes
}

// ranks are the scores of the nodes for one shape, as of a number of changes.
type ranks struct {
	score []int64 // -1 for a node that the pod does not fit
	gpu   []int
	seen  int // changes
}

// reference is a policy on nodes.
type reference struct {
	policy  Policy
	nodes   []openbState
	changes []int                 // nodes, oldest first; each counts as changed at the beginning
	byShape map[OpenbShape]*ranks // shape -> its scores
}

// newReference starts a policy on empty nodes. They are in an order that the seed draws, and among nodes of equal score
// the first one is chosen. The paper does not mention it, and it decides often, because scores are whole percentages:
// if each decision draws a node, FGD allocates 5 points less of default than published; in the order of the list, the
// first node costs FGD 1.6 points of cpu250, and the last one costs BestFit 0.4 points.
func (o *Openb) newReference(policy Policy, seed int64) *reference {
	r := &reference{policy: policy, nodes: emptyStates(o), byShape: map[OpenbShape]*ranks{}}
	rand.New(rand.NewSource(seed)).Shuffle(len(r.nodes), func(i, j int) {
		r.nodes[i], r.nodes[j] = r.nodes[j], r.nodes[i]
	})
	for i := range r.nodes {
		r.changes = append(r.changes, i)
	}
	return r
}

// place places a pod, and returns its node, -1 for none, and its GPUs.
func (r *reference) place(s *OpenbShape) (node int, gpus []int) {
	k := r.byShape[*s]
	if k == nil {
		k = &ranks{score: make([]int64, len(r.nodes)), gpu: make([]int, len(r.nodes))}
		r.byShape[*s] = k
	}
	for _, n := range r.changes[k.seen:] {
		if k.score[n] = -1; r.nodes[n].fits(s) {
			k.score[n], k.gpu[n] = r.policy(&r.nodes[n], s)
		}
	}
	k.seen = len(r.changes)
	node = best(k.score)
	if node >= 0 {
		gpus = r.nodes[node].choose(s, k.gpu[node])
		r.nodes[node].take(s, k.gpu[node])
		r.changes = append(r.changes, node)
	}
	return node, gpus
}

// remove ends a pod.
func (r *reference) remove(s *OpenbShape, node int, gpus []int) {
	r.nodes[node].release(s, gpus)
	r.changes = append(r.changes, node)
}

// Reference runs a policy under the protocol.
func (o *Openb) Reference(policy Policy, seed int64) *Curve {
	r := o.newReference(policy, seed)
	curve := o.NewCurve()
	for _, i := range o.Arrive(seed) {
		s := &o.Pods[i].OpenbShape
		n, _ := r.place(s)
		curve.Arrived(s.GPUMilli(), n >= 0)
	}
	return curve
}

// best returns the index of the first of the highest scores, -1 if all are negative.
func best(scores []int64) int {
	at := -1
	for i, v := range scores {
		if v >= 0 && (at < 0 || v > scores[at]) {
			at = i
		}
	}
	return at
}
