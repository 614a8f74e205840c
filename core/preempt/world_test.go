// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
)

// world is a simulated cluster, with a search for victims that is kept from question to question.
type world struct {
	*simulated.Cluster
	finder preempt.Finder
	serial int
}

func newWorld() *world { return &world{Cluster: simulated.NewCluster()} }

// ask searches for a node, and where there is none for victims; ok is false where there is one.
func (w *world) ask(f *preempt.Finder, pod *v1.Pod, more func(*preempt.Question)) (a preempt.Answer, ok bool) {
	p, s := w.Intake.Pod(pod), w.Store.Snapshot()
	out := w.Placer.Place(s, p, w.Nominations, func(int) int { return 0 })
	if out.Node != cluster.NoNode || out.Err != nil {
		return a, false
	}
	q := preempt.Question{Pod: p, Nominated: p.Nominated, WhatIf: w.Placer.WhatIf(s, out), Draw: func(int) int { return 0 }}
	if more != nil {
		more(&q)
	}
	a = f.Find(s, q)
	if err := f.CheckInvariants(); err != nil {
		panic(err)
	}
	return a, true
}

// told is an answer in words.
func (w *world) told(a preempt.Answer) string {
	if a.Verdict != preempt.Evict {
		return a.Message
	}
	return w.named(a.Best)
}

func (w *world) named(c preempt.Candidate) string {
	var names []string
	for _, p := range c.Victims {
		names = append(names, p.Name)
	}
	return fmt.Sprint(w.Store.Snapshot().NodeName(c.Node), " ", names, " ", c.Loss.Violations)
}

// drawPod draws a pod with whatever makes filters reject.
func (w *world) drawPod(t *rapid.T, plain bool) *v1.Pod {
	w.serial++
	p := simulated.Pod(fmt.Sprint("p", w.serial), int32(rapid.IntRange(0, 3).Draw(t, "priority")), int64(rapid.IntRange(0, 3).Draw(t, "cores")))
	if at := rapid.IntRange(0, 6).Draw(t, "start"); at > 0 {
		simulated.Started(p, int64(at))
	}
	if app := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "app"); app != "" {
		p.Labels = map[string]string{"app": app}
	}
	if plain {
		return p
	}
	about := &metav1.LabelSelector{MatchLabels: map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "about")}}
	key := rapid.SampledFrom([]string{"zone", v1.LabelHostname}).Draw(t, "key")
	switch rapid.IntRange(0, 11).Draw(t, "special") {
	case 0:
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(80 + rapid.IntRange(0, 1).Draw(t, "port"))}}
	case 1:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: about}}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: about, TopologyKey: key}}}}
	case 3:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: about, TopologyKey: key}}}}
	case 4:
		p.Spec.NodeSelector = map[string]string{"zone": rapid.SampledFrom([]string{"z0", "z9"}).Draw(t, "selected")}
	case 5:
		p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = apiresource.MustParse("1")
	case 6:
		p.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = apiresource.MustParse("6Gi")
	}
	return p
}

// stir makes one thing happen to the cluster.
func (w *world) stir(t *rapid.T, plain bool) {
	name := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))
	switch rapid.SampledFrom([]string{"node", "pod", "pod", "pod", "pod", "gone", "start", "budget", "nominate", "going"}).Draw(t, "what") {
	case "node":
		w.SetNode(name, int64(rapid.IntRange(1, 6).Draw(t, "cores")), int64(rapid.IntRange(2, 6).Draw(t, "pods")), fmt.Sprint("z", rapid.IntRange(0, 2).Draw(t, "zone")))
	case "pod":
		w.Bind(name, w.drawPod(t, plain))
	case "gone":
		if p := w.anyPod(t); p != nil {
			w.Change(func() { w.Store.DeletePod(p.UID) })
		}
	case "start", "going":
		if p := w.anyPod(t); p != nil {
			q := *p
			q.Start = 1e9 * 60
			w.Change(func() { w.Store.SetPod(&q) })
		}
	case "budget":
		w.SetBudget(fmt.Sprint("b", rapid.IntRange(0, 1).Draw(t, "which")), int32(rapid.IntRange(0, 2).Draw(t, "allowed")),
			map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")})
	case "nominate":
		if rapid.Bool().Draw(t, "off") {
			delete(w.Nominations, name)
		} else {
			w.Nominations[name] = []*cluster.Pod{w.Intake.Pod(w.drawPod(t, plain))}
		}
	}
}

func (w *world) anyPod(t *rapid.T) *cluster.Pod {
	var pods []*cluster.Pod
	s := w.Store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p) })
	}
	if len(pods) == 0 {
		return nil
	}
	return pods[rapid.IntRange(0, len(pods)-1).Draw(t, "which pod")]
}
