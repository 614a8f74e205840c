// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// supposition is the state of one question about a changed cluster. What it does to the store ends with the
// question. It searches with caches of its own, so that those of the scheduling cycle never see what was only
// supposed.
type supposition struct {
	Inspector
	cluster *cluster.Supposition
	trial   *cluster.Trial
	// placers: schedulerName -> its search, as that profile has it but for the strategy and foreign code.
	placers map[string]*place.Placer
	finder  units.Finder
	// nominations are those of the queue, or as the gang in question sees them.
	nominations place.Nominations
	// deleted are waiting pods that are supposed deleted. Their nominations do not count.
	deleted map[cluster.UID]bool
	// displaced are the pods that were taken off their nodes, as they would wait if they were created again.
	displaced []*cluster.Pod
	notes     []string
	added     map[string]int // name of a node -> how many were added like it
}

// suppose runs answer on a supposition, which ends when suppose returns. A panic becomes an error, except that of a
// broken invariant.
func (i Inspector) suppose(about *cluster.Pod, answer func(*supposition)) (err error) {
	c := i.view.Suppose()
	defer c.End()
	defer contain(func(cause any) { err = fmt.Errorf("judging %s panicked: %v", about.Key(), cause) })
	answer(&supposition{
		Inspector: i, cluster: c, trial: c.Trial(), nominations: i.view.Queue(),
		placers: map[string]*place.Placer{}, finder: i.view.Preemption().Finder().Fork(),
		deleted: map[cluster.UID]bool{}, added: map[string]int{},
	})
	return nil
}

// placer returns the search for the pods of a profile. It scans all nodes and calls native plugins only.
func (w *supposition) placer(prof *engine.Profile) *place.Placer {
	pl := w.placers[prof.Name]
	if pl == nil {
		native := place.Profile{Filters: prof.Filters, Scorers: prof.Scorers}
		pl = place.New(native, engine.NoMeter{}, w.view.Config().ClassBytes)
		w.placers[prof.Name] = pl
	}
	return pl
}

// NominatedNodes returns the nodes with nominations.
func (w *supposition) NominatedNodes() []string { return w.nominations.NominatedNodes() }

// NominatedOn returns the pods nominated on a node, without those that are supposed deleted.
func (w *supposition) NominatedOn(node string) []*cluster.Pod {
	pods := w.nominations.NominatedOn(node)
	if len(w.deleted) == 0 {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p *cluster.Pod) bool { return w.deleted[p.UID] })
}

// displace takes a pod off its node.
func (w *supposition) displace(p *cluster.Pod) {
	w.trial.Evict(p.UID)
	again := *p
	again.NodeName, again.Nominated, again.Terminating, again.Preempted = "", "", false, false
	again.Start, again.Bound, again.Condition = 0, nil, cluster.Condition{}
	w.displaced = append(w.displaced, &again)
}

// note adds a note to the answer, once.
func (w *supposition) note(text string) {
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}
