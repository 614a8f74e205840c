// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"
	"slices"
	"syscall"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// The measurement of a decision: so many nodes and shapes of pods, pods that are there, and pods that are measured in
// each round.
const (
	decisionNodes  = 5000
	decisionShapes = 12
	decisionBound  = 20000
	decisionPods   = 3000
	decisionRounds = 5
)

// decision measures the CPU time of a decision under each configuration, in rounds that take turns, with the bind and
// the end of an older pod.
func decision(b *bench) error {
	names := []string{dropIn, "binpack", "fgd", "spread"}
	micros, known, err := measured(b, "all", "", b.seeds[0], func() (map[string][]float64, error) {
		return measureDecisions(names)
	})
	if err != nil {
		return err
	}
	b.head("configuration", "microseconds of CPU, median of rounds", "least, most", "times the first")
	for _, name := range names {
		if !known {
			b.tableRow(name, notMeasured, notMeasured, notMeasured)
			continue
		}
		list := micros[name]
		middle := list[len(list)/2]
		b.tableRow(name, fmt.Sprintf("%.1f", middle), fmt.Sprintf("%.1f, %.1f", list[0], list[len(list)-1]),
			fmt.Sprintf("%.2f", middle/micros[dropIn][len(list)/2]))
	}
	return nil
}

// measureDecisions returns what a decision takes under each configuration, sorted: configuration -> microseconds of
// rounds.
func measureDecisions(names []string) (map[string][]float64, error) {
	var runs []*decisionRun
	for _, name := range names {
		r, err := newDecisionRun(name)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	for range decisionRounds {
		for _, r := range runs {
			if err := r.round(); err != nil {
				return nil, err
			}
		}
	}
	out := map[string][]float64{}
	for _, r := range runs {
		slices.Sort(r.micros)
		out[r.name] = r.micros
	}
	return out, nil
}

// decisionRun is one scheduler that is measured.
type decisionRun struct {
	name      string
	placement *quality.Placement
	templates []*cluster.Pod
	draw      *rand.Rand
	bound     []*cluster.Pod // oldest first
	micros    []float64      // for each pod, by round
}

func newDecisionRun(name string) (*decisionRun, error) {
	text, err := file(name, nil)
	if err != nil {
		return nil, err
	}
	makeScheduler, err := stepper(text, 1)
	if err != nil {
		return nil, err
	}
	var nodes []*v1.Node
	for i := range decisionNodes {
		name := fmt.Sprintf("node-%04d", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelTopologyZone: zone(i, 3)}}}
		cpu := int64(16 << (i % 3))
		n.Status.Allocatable = requests(cpu*1000, cpu*4)
		n.Status.Allocatable[v1.ResourcePods] = apiresource.MustParse("110")
		nodes = append(nodes, n)
	}
	r := &decisionRun{name: name, placement: quality.NewPlacement(makeScheduler(nil), nodes),
		draw: rand.New(rand.NewSource(1))}
	for i := range decisionShapes {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}}
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
		pod.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: requests(int64(250*(1+i%4)), int64(1+i))}}}
		r.templates = append(r.templates, r.placement.Template(pod))
	}
	for range decisionBound {
		if err := r.place(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func requests(milli, gib int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *apiresource.NewMilliQuantity(milli, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(gib<<30, apiresource.BinarySI)}
}

func (r *decisionRun) place() error {
	pod := r.placement.Place(r.templates[r.draw.Intn(len(r.templates))])
	if pod.NodeName == "" {
		return fmt.Errorf("%s: pod %s was not placed", r.name, pod.Name)
	}
	r.bound = append(r.bound, pod)
	return nil
}

// round places pods, each after the end of the oldest one.
func (r *decisionRun) round() error {
	before := cpuMicros()
	for range decisionPods {
		r.placement.Remove(r.bound[0])
		r.bound = r.bound[1:]
		if err := r.place(); err != nil {
			return err
		}
	}
	r.micros = append(r.micros, (cpuMicros()-before)/decisionPods)
	return nil
}

// cpuMicros returns the CPU time of the process.
func cpuMicros() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no other reason than a wrong argument
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
