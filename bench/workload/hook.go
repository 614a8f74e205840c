// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
)

// declaredFeatures is a parameter that no operation of upstream's file names: a hook in Go beside it
// (scheduler_perf/nodedeclaredfeatures, updateNodesWithDeclaredFeatures) writes so many features into the status of each node.
// That the hook also makes the scheduler want them cannot be had of a process of its own.
const declaredFeatures = "numNodeDeclaredFeatures"

// declareFeatures does what the hook does, to all nodes of a plan with its gate.
func (r *reading) declareFeatures(p *Plan) {
	param, given := r.args.workload.Params[declaredFeatures]
	gate, gated := p.Gates["NodeDeclaredFeatures"]
	if !given || !gated {
		return
	}
	r.args.used[declaredFeatures] = true
	n, whole := param.Value.(int)
	if !whole || n < 0 || n > maxCount {
		r.mistake(param.Line, "%s must be a whole number from 0 to %d, not %v", declaredFeatures, maxCount, param.Value)
		return
	}
	if !gate {
		return
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("Feature%d", i+1))
	}
	slices.Sort(names) // as the API server wants them
	for _, op := range p.Ops {
		if nodes, is := op.(*CreateNodes); is {
			nodes.Features = names
		}
	}
}
