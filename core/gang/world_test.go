// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/record"
)

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}
func (noMeter) Did(record.Work, int)        {}

// world is a cluster with the default profile.
type world struct {
	store   *cluster.Store
	intake  *convert.Intake
	placer  *place.Placer
	profile place.Profile
	noms    promised
	forgets bool // nothing is known of kinds of pods at the start of a search
	// reservers are asked for each member that gets a place.
	reservers []plugin.Reserver
	// placements may be nil.
	placements plugin.Placements
	decision   uint64 // keys the draws, besides a seed
}

// promised are nominated pods in the order of their nodes.
type promised []*cluster.Pod

func (p promised) NominatedNodes() (names []string) {
	for _, pod := range p {
		names = append(names, pod.Nominated)
	}
	return names
}

func (p promised) NominatedOn(node string) (pods []*cluster.Pod) {
	for _, pod := range p {
		if pod.Nominated == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// profile is the default profile, as far as a search asks it.
func profile(t interface{ Fatal(...any) }) place.Profile {
	prof, _ := defaults(t)
	return prof
}

// defaults are the default profile and its reservers.
func defaults(t interface{ Fatal(...any) }) (prof place.Profile, reservers []plugin.Reserver) {
	for _, enabled := range plugins.DefaultProfile() {
		reg, _ := plugins.Lookup(enabled.Name)
		pl, err := reg.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := pl.(plugin.Filter); ok {
			prof.Filters = append(prof.Filters, f)
		}
		if sc, ok := pl.(plugin.Scorer); ok {
			prof.Scorers = append(prof.Scorers, place.Scorer{Scorer: sc, Weight: enabled.Weight})
		}
		if r, ok := pl.(plugin.Reserver); ok {
			reservers = append(reservers, r)
		}
	}
	return prof, reservers
}

func newWorld(t interface{ Fatal(...any) }) *world {
	prof := profile(t)
	return &world{store: cluster.NewStore(), intake: convert.NewIntake(),
		placer: place.New(prof, noMeter{}, place.DefaultClassBytes), profile: prof}
}

// list reads amounts such as "cpu=4,memory=8Gi".
func list(amounts map[string]string) v1.ResourceList {
	out := v1.ResourceList{}
	for name, amount := range amounts {
		out[v1.ResourceName(name)] = apiresource.MustParse(amount)
	}
	return out
}

// node adds a node with four cores, 32 GiB and capacity for 110 pods, unless amounts say otherwise.
func (w *world) node(name string, labels map[string]string, amounts map[string]string) {
	all := map[string]string{"cpu": "4", "memory": "32Gi", "pods": "110"}
	for k, v := range amounts {
		all[k] = v
	}
	w.store.SetNode(w.intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: v1.NodeStatus{Allocatable: list(all)}}))
}

// pod is a pod that asks for amounts.
func pod(name string, amounts map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "c", Image: "i",
			Resources: v1.ResourceRequirements{Requests: list(amounts)}}}}}
}

// members are n alike pods.
func (w *world) members(n int, like *v1.Pod) []*cluster.Pod {
	var out []*cluster.Pod
	for i := range n {
		p := like.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", like.Name, i)
		p.UID = types.UID(p.Name)
		out = append(out, w.intake.Pod(p))
	}
	return out
}

// try looks for places in a trial of its own, and hands the answer to then before the trial is discarded.
func (w *world) try(need gang.Need, then func(gang.Answer)) {
	w.store.Begin()
	defer w.store.Abort()
	then(w.place(need))
}

// place looks for places inside a transaction.
func (w *world) place(need gang.Need) gang.Answer {
	if w.forgets {
		w.placer = place.New(w.profile, noMeter{}, place.DefaultClassBytes)
	}
	trial := w.store.Trial()
	g := &gang.Ground{Trial: trial, Placer: w.placer, Nominations: w.noms, Draw: place.Draw(1, 1+w.decision),
		Reservers: w.reservers, Placements: w.placements, Meter: noMeter{}}
	a := gang.Place(need, g)
	if err := gang.CheckInvariants(need, g, a); err != nil {
		panic(err)
	}
	trial.Commit()
	return a
}
