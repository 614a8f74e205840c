// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is what creates the pods of a workload, and what follows when one of them ends.
type Kind string

// The kinds.
const (
	// Pods are not replaced.
	Pods Kind = "pods"
	// ReplicaSet keeps Size pods.
	ReplicaSet Kind = "replicaSet"
	// Job runs Size pods at a time until Completions have succeeded. It replaces pods that failed, at most Retries of
	// them, and those that ended otherwise.
	Job Kind = "job"
	// StatefulSet keeps Size pods with names of their own, and their claims: one pod is created after the other, when
	// the one before runs, and deleted in the opposite order.
	StatefulSet Kind = "statefulSet"
	// Gang is Size pods that work only together: the work begins when all run. If one ends before, all are deleted and
	// created again. A single pod declares no gang.
	Gang Kind = "gang"
)

// Workload creates units: pods, ReplicaSets, Jobs or gangs.
type Workload struct {
	Name string
	Kind Kind
	// Pod has the labels and the spec of the pods.
	Pod *v1.Pod
	// Size is the number of pods of a unit (of a Job: at a time). Completions is for Jobs; 0 means Size.
	Size, Completions int
	// Work is how long a pod runs, or a gang from when all its pods run. The zero value means without end.
	Work Durations
	// FailRate is the share of the pods, or of the runs of a gang, that fail at the end of their work.
	FailRate float64
	// Claims are the templates of the claims of a StatefulSet's pods.
	Claims []v1.PersistentVolumeClaim
	// Parallel lets a StatefulSet create and delete all its pods at once.
	Parallel bool
	// Retries is how many failures a Job or a gang survives.
	Retries int
	// Count is the number of units; 0 means 1, below 0 none. The first is created at First, the next
	// ones after gaps drawn from Every.
	Count int
	First time.Duration
	Every Durations

	index uint64
	units []*Unit
}

// Units returns the units that were created so far.
func (l *Workload) Units() []*Unit { return l.units }

// Load has a workload's units created at their times. index tells the workloads of a run apart in draws.
func (w *World) Load(l *Workload, index int) {
	l.index = uint64(index)
	if l.Size < 1 {
		l.Size = 1
	}
	if l.Completions < 1 {
		l.Completions = l.Size
	}
	if l.Count == 0 {
		l.Count = 1
	}
	if l.Count < 0 {
		return
	}
	var next func(i int)
	next = func(i int) {
		w.CreateUnit(l, l.Size, l.Work.draw(mix(w.setup.Seed, streamDuration, l.index, uint64(i)<<20)))
		if i+1 < l.Count {
			w.After(l.Every.draw(mix(w.setup.Seed, streamArrival, l.index, uint64(i))), func() { next(i + 1) })
		}
	}
	w.At(l.First, func() { next(0) })
}

// Unit is what a workload creates: pods by themselves, a ReplicaSet, a Job or a gang.
type Unit struct {
	Workload *Workload
	Name     string
	// Created, Started and Finished are times; the latter two are -1 until as many pods as it wants run for the first
	// time, and until it has succeeded. GaveUp reports whether it failed too often.
	Created, Started, Finished time.Duration
	GaveUp                     bool
	// Restarts counts the times that a gang was created again, and the pods of others that were replaced.
	Restarts int

	w        *World
	number   int
	size     int
	work     time.Duration // of a gang
	template *Template
	live     []*Pod // that are not gone, in the order of their creation
	made     int    // pods
	run      int    // of a gang: which time it runs
	bound    int    // of the pods in live, those that have a node and do not terminate
	running  int    // of the pods in live, those that run and do not terminate
	whole    bool   // a gang whose members were all bound in this run
	won      int    // pods that succeeded
	failures int
	stopped  bool
	waiting  bool     // a change of its pods is requested
	counted  int      // its part of World.partial
	ordered  *ordered // of a StatefulSet; else nil
}

// CreateUnit creates a unit with so many pods now. work is for gangs.
func (w *World) CreateUnit(l *Workload, size int, work time.Duration) *Unit {
	u := &Unit{Workload: l, Name: fmt.Sprintf("%s-%d", l.Name, len(l.units)), Created: w.now, Started: -1, Finished: -1,
		w: w, number: len(l.units), size: size, work: work}
	l.units = append(l.units, u)
	u.template = w.unitTemplate(u)
	u.fill()
	return u
}

// unitTemplate returns the template of a unit's pods. Pods by themselves and gangs share that of the first unit.
func (w *World) unitTemplate(u *Unit) *Template {
	l := u.Workload
	shared := l.Kind == Pods || l.Kind == Gang
	if shared && u.number > 0 {
		return l.units[0].template
	}
	p := l.Pod.DeepCopy()
	if p.Namespace == "" {
		p.Namespace = v1.NamespaceDefault
	}
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["workload"] = l.Name
	if !shared {
		p.Labels["unit"] = u.Name
		yes := true
		owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: u.Name, UID: types.UID(u.Name),
			Controller: &yes}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"unit": u.Name}}
		meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: u.Name, UID: types.UID(u.Name)}
		switch l.Kind {
		case ReplicaSet:
			owner.APIVersion, owner.Kind = "apps/v1", "ReplicaSet"
			w.SetObject(&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}})
		case StatefulSet:
			owner.APIVersion, owner.Kind = "apps/v1", "StatefulSet"
			w.SetObject(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}})
		}
		p.OwnerReferences = []metav1.OwnerReference{owner}
	}
	if l.Kind == StatefulSet {
		u.ordered = &ordered{pod: p, templates: map[int]*Template{}}
	}
	return w.Template(p)
}
