// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// apartUnits are the units of single pods that declare a gang: those of a group whose pods are scheduled one by one.
type apartUnits map[cluster.GangKey]map[*Unit]bool // gang -> its units -> true; never an empty set

func (a apartUnits) add(key cluster.GangKey, u *Unit) {
	if key == (cluster.GangKey{}) || u.Gang != (cluster.GangKey{}) {
		return
	}
	if a[key] == nil {
		a[key] = map[*Unit]bool{}
	}
	a[key][u] = true
}

func (a apartUnits) remove(key cluster.GangKey, u *Unit) {
	delete(a[key], u)
	if len(a[key]) == 0 {
		delete(a, key)
	}
}

// inOrder returns the units of a group by arrival.
func (a apartUnits) inOrder(key cluster.GangKey) []*Unit {
	units := make([]*Unit, 0, len(a[key]))
	for u := range a[key] { // order: sorted below
		units = append(units, u)
	}
	slices.SortFunc(units, func(x, y *Unit) int {
		if older(x, y) {
			return -1
		}
		return 1
	})
	return units
}

// Apart returns the waiting pods of a group whose pods are scheduled one by one, by arrival.
func (q *Queue) Apart(key cluster.GangKey) (pods []*cluster.Pod) {
	for _, u := range q.apart.inOrder(key) {
		pods = append(pods, u.Members...)
	}
	return pods
}

// Regroup applies a change of whether the pods of a group are scheduled one by one: pods that wait together become
// units of their own, or the reverse. Their nominations stay. A unit in flight is not changed.
func (q *Queue) Regroup(key cluster.GangKey, cause string) {
	var units []*Unit
	switch u := q.gangs[key]; {
	case !q.cfg.Gangs.Apart(key):
		units = q.apart.inOrder(key)
	case u != nil:
		units = []*Unit{u}
	}
	n := note{event: gangChanged, cause: cause}
	for _, u := range units {
		if u.at == inFlight || u.at == aside {
			continue
		}
		pods := u.Members
		q.put(u, nowhere, n)
		for _, p := range pods {
			node := q.NominationOf(p.UID)
			q.enter(p, gangChanged, cause)
			q.Nominate(p, node)
		}
	}
}
