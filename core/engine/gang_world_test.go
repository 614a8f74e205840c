// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// gangWorld is what a world with gangs knows of them.
type gangWorld struct {
	sizes map[string]int  // gang -> how many pods it needs
	whole map[string]bool // gang -> as many were bound once
}

const gangAnnotation, quorumAnnotation = "gang", "quorum"

// compact is a pod as the engine is shown it, with what its annotations say of its gang.
func (w *world) compact(p *v1.Pod) *cluster.Pod {
	c := w.intake.Pod(p.DeepCopy())
	if name := p.Annotations[gangAnnotation]; name != "" {
		c.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: p.Namespace, Name: name}, Size: w.gangs.sizes[name]}
		if n, err := strconv.Atoi(p.Annotations[quorumAnnotation]); err == nil {
			c.Bound = &cluster.BoundMark{Quorum: n}
		}
	}
	return c
}

// bound notes a pod that the API server has just bound.
func (g *gangWorld) bound(p *v1.Pod, b engine.Bind) {
	if b.Gang != nil {
		p.Annotations[quorumAnnotation] = fmt.Sprint(b.Gang.Quorum)
	}
}

// createGang makes a gang whose pods come in any order between other things.
func (w *world) createGang() {
	name := fmt.Sprintf("g%d", len(w.gangs.sizes))
	size := rapid.IntRange(1, 4).Draw(w.t, "size")
	w.gangs.sizes[name] = size
	owned := rapid.IntRange(0, 3).Draw(w.t, "owned") > 0
	for i := range size + rapid.IntRange(0, 1).Draw(w.t, "extras") {
		p := w.newPod(fmt.Sprintf("%s-%d", name, i))
		p.Annotations = map[string]string{gangAnnotation: name}
		p.Spec.SchedulingGates, p.Status.NominatedNodeName = nil, ""
		if owned {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: name, Controller: &yes}}
		}
		w.changed(p)
	}
}

func (w *world) evict(f engine.Evict) {
	for _, v := range f.Victims {
		p := w.pods[v.UID]
		if p == nil {
			continue
		}
		if len(p.OwnerReferences) == 0 {
			w.t.Fatalf("pod %s is taken back to undo its gang, and nobody makes it again", p.Name)
		}
		w.remove(p)
	}
	w.answers = append(w.answers, engine.EvictDone{For: f.For, Decision: f.Decision})
}

// checkGangs: a decision gives places to as many pods of a gang as it needs, or to none.
func (w *world) checkGangs(effects []engine.Effect) {
	placed := map[uint64]int{} // decision -> pods that it placed
	parts := map[uint64]*record.GangPart{}
	for _, f := range effects {
		if d, is := f.(engine.Decided); is && d.Decision.Gang != nil && d.Decision.Verdict == record.Placed {
			placed[d.Decision.Gang.Decision]++
			parts[d.Decision.Gang.Decision] = d.Decision.Gang
		}
	}
	for number, g := range parts {
		name := g.Name[len("default/"):]
		if got := placed[number] + g.Held; got < w.gangs.sizes[name] {
			w.t.Fatalf("decision %d places %d pods of gang %s, which has %d and needs %d", number, placed[number], name, g.Held, w.gangs.sizes[name])
		}
	}
	w.noteWhole()
}

// noteWhole notes the gangs of which enough are bound. A pod may go before the engine hears of anything.
func (w *world) noteWhole() {
	if w.gangs == nil {
		return
	}
	for name, size := range w.gangs.sizes {
		if n, _ := w.countGang(name); n >= size {
			w.gangs.whole[name] = true
		}
	}
}

// checkExtras: no gang gets more places than it needs while something of its priority or more may be tried, or
// backs off after a rejection, that needs a place: a pod by itself, or a gang that has not what it needs.
func (w *world) checkExtras(effects []engine.Effect, tryable []engine.Tryable) {
	placed := map[string]int{} // gang -> pods that were placed
	held := map[string]int{}   // gang -> pods that had a place before
	for _, f := range effects {
		if d, is := f.(engine.Decided); is && d.Decision.Gang != nil && d.Decision.Verdict == record.Placed {
			name := d.Decision.Gang.Name[len("default/"):]
			placed[name]++
			held[name] = d.Decision.Gang.Held
		}
	}
	for name, n := range placed {
		if held[name]+n <= w.gangs.sizes[name] {
			continue
		}
		mine := slices.IndexFunc(tryable, func(u engine.Tryable) bool { return u.Gang == name })
		for _, u := range tryable {
			extra := u.Gang != "" && u.Placed >= w.gangs.sizes[u.Gang]
			if mine >= 0 && u.Gang != name && !extra && u.Priority >= tryable[mine].Priority {
				w.t.Fatalf("gang %s gets %d places besides %d, and needs %d, while %s of priority %d needs one", name, n, held[name], w.gangs.sizes[name], u.Key, u.Priority)
			}
		}
	}
}

// countGang is how many pods of a gang are bound, and how many wait, as the API server has it.
func (w *world) countGang(name string) (bound, waiting int) {
	for _, p := range w.pods {
		switch {
		case p.Annotations[gangAnnotation] != name || p.DeletionTimestamp != nil:
		case p.Spec.NodeName != "":
			bound++
		default:
			waiting++
		}
	}
	return bound, waiting
}

// checkWhole: at rest no gang is bound in part (rule R8), but for those that lost pods after they were whole
// (answer A7), and those of which somebody deleted pods on the way: too few are left to be whole.
func (w *world) checkWhole() {
	for _, name := range sortedKeys(w.gangs.sizes) {
		bound, waiting := w.countGang(name)
		if bound == 0 || bound >= w.gangs.sizes[name] || w.gangs.whole[name] || bound+waiting < w.gangs.sizes[name] {
			continue
		}
		if slices.ContainsFunc(sortedKeys(w.pods), func(uid string) bool {
			p := w.pods[uid]
			return p.Annotations[gangAnnotation] == name && len(p.OwnerReferences) == 0
		}) {
			continue // its pods would not be made again: the capacity is held
		}
		w.t.Fatalf("gang %s is bound in part: %d of %d, %d wait", name, bound, w.gangs.sizes[name], waiting)
	}
}

// TestGangsAreBoundWholeOrNotAtAll runs random histories of gangs among pods by themselves: binds fail, nodes and pods
// vanish, the scheduler is killed at any point. Held at every decision: as many pods as the gang needs get a place, or
// none. Held at rest: no gang is bound in part, nothing is assumed, no node is oversold, and the tape plays to the same
// effects.
// It catches the mutants halfGangs, memberGivenUp, orphansUndone and extrasWithMinimum.
func TestGangsAreBoundWholeOrNotAtAll(t *testing.T) { rapid.Check(t, gangHistory) }

func gangHistory(t *rapid.T) {
	w := newWorld(t)
	w.gangsCome(t)
	w.settle()
	w.checkRest()
	w.checkWhole()
	w.checkReplay()
}

// gangsCome makes a history of gangs among pods by themselves.
func (w *world) gangsCome(t *rapid.T) {
	w.gangs = &gangWorld{sizes: map[string]int{}, whole: map[string]bool{}}
	w.oursOnly = rapid.Bool().Draw(t, "alone")
	w.setNode("n0")
	w.setNode("n1")
	for range rapid.IntRange(1, 50).Draw(t, "moves") {
		switch rapid.IntRange(0, 9).Draw(t, "gang") {
		case 0, 1:
			w.createGang()
		case 2, 3:
			w.do("watch")
		case 4:
			w.do("bind")
		case 5:
			w.do("cycle")
		default:
			w.happen()
		}
	}
}
