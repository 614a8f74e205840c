// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// gangWorld is a world whose pods may be in gangs. The search for victims is lent the search for places as the engine
// does it.
type gangWorld struct {
	*simulated.Cluster
	serial int // of the pod drawn last
	// never: pod name -> why it may not be evicted. declared: gang -> its own priority.
	never    map[string]string
	declared map[string]int32
	byPods   map[string]bool // gangs whose pods go one by one
	stuck    map[string]bool // terminating pods that are not counted on
	budget   int             // of one search for places; 0 for the default
}

func newGangWorld() *gangWorld {
	w := simulated.NewCluster()
	w.Intake.DeclareGangs(convert.GangRules{Annotation: true})
	return &gangWorld{Cluster: w, never: map[string]string{}, declared: map[string]int32{}, byPods: map[string]bool{}, stuck: map[string]bool{}}
}

// of puts a pod into a gang.
func of(gang string, p *v1.Pod) *v1.Pod {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, "pod_group", gang)
	return p
}

// going is a pod that is being deleted.
func going(p *v1.Pod) *v1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time}
	return p
}

// rule tells how the pods of a gang go.
func (w *gangWorld) rule(key cluster.GangKey) units.Rule {
	own, declared := w.declared[key.Name]
	return units.Rule{Whole: !w.byPods[key.Name], Declared: declared, Priority: own}
}

func (w *gangWorld) staysOn(p *cluster.Pod) bool { return w.stuck[p.Name] }

func (w *gangWorld) mayNot(p *cluster.Pod) string { return w.never[p.Name] }

// protection is the priority that protects a pod: what its gang declares, or the highest of its members' where it
// goes whole.
func (w *gangWorld) protection(p *cluster.Pod) int32 {
	s := w.Store.Snapshot()
	key, in := s.HeldGang(p.UID)
	own, declared := w.declared[key.Name]
	highest := p.Spec.Priority
	switch {
	case in && declared:
		return own
	case in && !w.byPods[key.Name]:
		for _, other := range s.GangMembers(key) {
			highest = max(highest, other.Pod.Spec.Priority)
		}
	}
	return highest
}

// wish is a preemptor: its pods, and where they must be together.
type wish struct {
	pods     []*v1.Pod
	quorum   int // 0 for all
	power    int32
	topology []cluster.GangTopology
	bound    []cluster.NodeIdx
	notPlain bool // the plain form's answer costs more
	strict   bool
}

// times is a pod several times over.
func times(n int, like *v1.Pod) (pods []*v1.Pod) {
	for i := range n {
		p := like.DeepCopy()
		p.Name = fmt.Sprint(like.Name, i)
		p.UID = types.UID(p.Name)
		pods = append(pods, p)
	}
	return pods
}

// need is a wish as the search for places takes it.
func (w *gangWorld) need(ask wish) gang.Need {
	need := gang.Need{Quorum: ask.quorum, Topology: ask.topology, Bound: ask.bound, Budget: w.budget}
	for _, p := range ask.pods {
		need.Members = append(need.Members, w.Intake.Pod(p))
	}
	if need.Quorum == 0 {
		need.Quorum = len(need.Members)
	}
	return need
}

// where are the places that there are in a trial, which is left as it was; nil for none.
func (w *gangWorld) where(trial *cluster.Trial, need gang.Need) []cluster.NodeIdx {
	mark := trial.Checkpoint()
	a := gang.Place(need, &gang.Ground{Trial: trial, Placer: w.Placer, Nominations: w.Nominations, Draw: func(int) int { return 0 }, Meter: simulated.NoMeter{}})
	trial.Rollback(mark)
	return a.Nodes
}

// fits reports whether there are any.
func (w *gangWorld) fits(trial *cluster.Trial, need gang.Need) bool {
	return w.where(trial, need) != nil
}

// units asks which units must go for a wish; ok is false where there are places already.
func (w *gangWorld) units(f *units.Finder, ask wish, more func(*units.Question)) (a units.Answer, ok bool) {
	w.Store.Begin()
	defer w.Store.Abort()
	trial := w.Store.Trial()
	defer trial.Discard()
	need := w.need(ask)
	if w.fits(trial, need) {
		return a, false
	}
	q := units.Question{
		Members: need.Members, Quorum: need.Quorum, Priority: ask.power, Trial: trial, Strict: ask.strict,
		Fits: func() bool { return w.fits(trial, need) }, Rows: func() []cluster.NodeIdx { return w.where(trial, need) }, Rule: w.rule, Never: w.mayNot, Stuck: w.staysOn,
		Placement: units.Placement{Placer: w.Placer, Nominations: w.Nominations, Bound: ask.bound},
	}
	if g := need.Members[0].Gang; g != nil {
		q.Own = g.Key
	}
	for _, level := range ask.topology {
		if level.Required {
			q.Placement.TopologyKeys = append(q.Placement.TopologyKeys, level.Key)
		}
	}
	if more != nil {
		more(&q)
	}
	before := w.listed()
	a = f.FindUnits(q)
	if after := w.listed(); after != before {
		panic(fmt.Sprintf("the search leaves\n%s\nof\n%s", after, before))
	}
	if err := f.CheckInvariants(); err != nil {
		panic(err)
	}
	return a, true
}

// toldUnits is an answer in words: the victims by name, gangs in brackets.
func toldUnits(a units.Answer) string {
	if a.Verdict != preempt.Evict {
		return a.Message
	}
	var parts []string
	for _, v := range a.Victims {
		var names []string
		for _, p := range v.Pods {
			names = append(names, p.Name)
		}
		words := strings.Join(names, " ")
		if v.Gang != (cluster.GangKey{}) {
			words = v.Gang.Name + "[" + words + "]"
		}
		parts = append(parts, words)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
