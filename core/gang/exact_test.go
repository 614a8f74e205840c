// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// exact is the solver to compare with: it tries every member on every row in every order, each judged by the plain
// forms of the filters with those before it in place. What it has seen once in one constellation it does not try
// again.
type exact struct {
	w    *world
	prof place.Profile
	need gang.Need
	// dead are constellations from which the quorum is not reached.
	dead map[string]bool
	left int // how many judgements it may still make
}

// feasible reports whether there are places for the quorum; known is false when the solver ran out of judgements.
func feasible(w *world, prof place.Profile, need gang.Need, judgements int) (is, known bool) {
	e := &exact{w: w, prof: prof, need: need, left: judgements}
	w.store.Begin()
	defer w.store.Abort()
	trial := w.store.Trial()
	defer trial.Discard()
	for _, rows := range domainsOf(w.store.Snapshot(), need) {
		e.dead = map[string]bool{}
		if e.from(trial, rows, make([]cluster.NodeIdx, len(need.Members)), 0) {
			return true, true
		}
	}
	return false, e.left > 0
}

// domainsOf are the rows of each domain that the required keys allow; all rows without such keys.
func domainsOf(s cluster.Snapshot, need gang.Need) [][]cluster.NodeIdx {
	byName := map[string][]cluster.NodeIdx{} // values -> rows
	for row := range s.Rows() {
		if name, ok := valuesOf(s, need, cluster.NodeIdx(row)); ok {
			byName[name] = append(byName[name], cluster.NodeIdx(row))
		}
	}
	var domains [][]cluster.NodeIdx
	for name, rows := range byName {
		allowed := len(need.Bound) == 0 || name == ""
		for _, n := range need.Bound {
			of, ok := valuesOf(s, need, n)
			allowed = allowed || ok && of == name
		}
		if allowed {
			domains = append(domains, rows)
		}
	}
	return domains
}

func valuesOf(s cluster.Snapshot, need gang.Need, n cluster.NodeIdx) (string, bool) {
	var values []string
	for _, level := range need.Topology {
		if level.Required {
			value, ok := s.Node(n).Labels[level.Key]
			if !ok {
				return "", false
			}
			values = append(values, value)
		}
	}
	return strings.Join(values, "/"), true
}

// from continues from a partial placement and reports whether it can be completed: at holds 1 + the row of each
// placed member, 0 for the others.
func (e *exact) from(trial *cluster.Trial, rows, at []cluster.NodeIdx, count int) bool {
	if count == e.need.Quorum {
		return true
	}
	key := e.key(at)
	if e.dead[key] || e.left <= 0 {
		return false
	}
	tried := map[*cluster.PodSpec]bool{} // members of one spec are alike
	for i, p := range e.need.Members {
		if at[i] != 0 || tried[p.Spec] {
			continue
		}
		tried[p.Spec] = true
		for _, n := range rows {
			e.left--
			if rejection(e.prof, trial.Snapshot(), p, n) != "" {
				continue
			}
			mark := trial.Checkpoint()
			trial.Assume(p, n)
			at[i] = n + 1
			if e.from(trial, rows, at, count+1) {
				return true
			}
			at[i] = 0
			trial.Rollback(mark)
		}
	}
	e.dead[key] = true
	return false
}

// key names a constellation, whichever of the members that are alike are where.
func (e *exact) key(at []cluster.NodeIdx) string {
	var parts []string
	for i, n := range at {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%p@%d", e.need.Members[i].Spec, n))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// rejection asks each filter, prepared anew, in its plain form.
func rejection(prof place.Profile, s cluster.Snapshot, p *cluster.Pod, n cluster.NodeIdx) string {
	view := s.View(n)
	for _, f := range prof.Filters {
		plan := f.PrepareFilter(s, p)
		_, named := plan.Nodes[s.NodeName(n)]
		switch {
		case plan.Err != nil:
			return plan.Err.Error()
		case plan.Reject != "":
			return plan.Reject
		case plan.Nodes != nil && !named:
			return "excluded"
		case plan.Filter == nil:
			continue
		}
		if code := plan.Filter.Plain(s, view); code != plugin.Fit {
			return fmt.Sprint(f.Name(), plan.Filter.Reasons(code))
		}
	}
	return ""
}

// wrong tells what is wrong with places: it puts the members there one by one, in the order of the answer, and judges
// each by the plain forms. Empty when all is well.
func wrong(w *world, prof place.Profile, need gang.Need, a gang.Answer) string {
	w.store.Begin()
	defer w.store.Abort()
	trial := w.store.Trial()
	defer trial.Discard()
	where := map[string]bool{}
	for _, n := range need.Bound {
		if name, ok := valuesOf(trial.Snapshot(), need, n); ok {
			where[name] = true
		}
	}
	for _, i := range a.Order {
		n := a.Nodes[i]
		if why := rejection(prof, trial.Snapshot(), need.Members[i], n); why != "" {
			return fmt.Sprintf("member %d on row %d: %s", i, n, why)
		}
		name, ok := valuesOf(trial.Snapshot(), need, n)
		if where[name] = true; !ok {
			return fmt.Sprintf("member %d is on row %d, which is in no domain", i, n)
		}
		trial.Assume(need.Members[i], n)
	}
	if len(a.Order) < need.Quorum {
		return fmt.Sprintf("%d places for a quorum of %d", len(a.Order), need.Quorum)
	}
	if len(where) != 1 {
		return fmt.Sprintf("places in %d domains: %v", len(where), where)
	}
	return ""
}

// fingerprint is all that can be read of a store.
func fingerprint(s cluster.Snapshot) string {
	var b strings.Builder
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		fmt.Fprintf(&b, "%s ports %v:", s.NodeName(n), s.Ports(n))
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { fmt.Fprintf(&b, " %s/%v", p.Key(), assumed) })
		for id := range s.Names().Len() {
			fmt.Fprintf(&b, " %d+%d", s.Requested(resource.ID(id)).At(n), s.Assumed(resource.ID(id)).At(n))
		}
		fmt.Fprintf(&b, " %d %d", s.NonZero(0)[n], s.NonZero(1)[n])
		b.WriteByte('\n')
	}
	return b.String()
}
