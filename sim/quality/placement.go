// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Placement has a scheduler place pods one by one on nodes. Binds succeed at once, and a pod that is not placed is
// deleted: it is not tried again. Time stands still.
type Placement struct {
	scheduler sim.Stepper
	intake    *convert.Intake
	made      int
}

// NewPlacement starts a scheduler on nodes.
func NewPlacement(scheduler sim.Stepper, nodes []*v1.Node) *Placement {
	p := &Placement{scheduler: scheduler, intake: convert.NewIntake()}
	scheduler.Step(engine.Tick{Now: record.Second})
	for _, n := range nodes {
		scheduler.Step(engine.NodeSet{Node: p.intake.Node(n)})
	}
	scheduler.Step(engine.Synced{})
	return p
}

// Template converts a pod, so that many like it can be placed.
func (p *Placement) Template(pod *v1.Pod) *cluster.Pod { return p.intake.Pod(pod) }

// Place creates a pod of a template, and returns it with its node; the node is empty if the pod was not placed.
func (p *Placement) Place(template *cluster.Pod) *cluster.Pod {
	p.made++
	pending := *template
	pending.Name = fmt.Sprint("pod-", p.made)
	pending.UID = cluster.UID(pending.Name)
	p.scheduler.Step(engine.PodSet{Pod: &pending})
	bound := pending
	for _, f := range p.scheduler.Step(engine.Cycle{}) {
		if bind, is := f.(engine.Bind); is && bind.Pod.UID == string(pending.UID) {
			bound.NodeName = bind.Node
		}
	}
	if bound.NodeName == "" {
		p.scheduler.Step(engine.PodGone{Pod: pending.Ref()})
		return &bound
	}
	p.scheduler.Step(engine.BindDone{Pod: pending.Ref(), Node: bound.NodeName})
	p.scheduler.Step(engine.PodSet{Pod: &bound})
	return &bound
}

// Err returns nil: a scheduler in this process answers.
func (*Placement) Err() error { return nil }

// Remove ends a pod that was placed.
func (p *Placement) Remove(pod *cluster.Pod) { p.scheduler.Step(engine.PodGone{Pod: pod.Ref()}) }

// Put shows the scheduler a pod of a template that is bound to a node already.
func (p *Placement) Put(template *cluster.Pod, node string) *cluster.Pod {
	p.made++
	bound := *template
	bound.Name = fmt.Sprint("pod-", p.made)
	bound.UID, bound.NodeName = cluster.UID(bound.Name), node
	p.scheduler.Step(engine.PodSet{Pod: &bound})
	return &bound
}
