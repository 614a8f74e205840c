// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// checkInvariants returns the first invariant of the queue's fields that does not hold, nil if all hold.
func (q *Queue) checkInvariants() error {
	for uid, u := range q.units { // order: any violation suffices
		switch {
		case u.at == nowhere:
			return fmt.Errorf("unit %s is known and nowhere", u.Key)
		case len(u.Members) == 0:
			return fmt.Errorf("unit %s has no members", u.Key)
		case u.index(uid) < 0 && !slices.ContainsFunc(u.joining, func(p *cluster.Pod) bool { return p.UID == uid }):
			return fmt.Errorf("unit %s is known by pod %s, which it does not have", u.Key, uid)
		}
	}
	for key, u := range q.gangs { // order: any violation suffices
		if u.Gang != key {
			return fmt.Errorf("unit %s is of gang %v and known as %v", u.Key, u.Gang, key)
		}
	}
	for key, units := range q.apart { // order: any violation suffices
		if len(units) == 0 {
			return fmt.Errorf("group %v has an empty set of units", key)
		}
	}
	if !slices.IsSortedFunc(q.asks, func(a, b gangAsk) int { return int(a.at - b.at) }) {
		return fmt.Errorf("scheduled checks of gates are not sorted: %v", q.asks)
	}
	for i, h := range []*heap{&q.active, &q.backoff, &q.rests, &q.errors, &q.aging} {
		for pos, u := range h.units {
			if u.pos != pos || pos > 0 && h.less(u, h.units[(pos-1)/2]) {
				return fmt.Errorf("heap %d: unit %s at %d has position %d, or is less than its parent", i, u.Key, pos, u.pos)
			}
		}
	}
	for _, g := range append(slices.Clone(q.groups), &q.aside) {
		if err := g.checkInvariants(); err != nil {
			return err
		}
	}
	for _, u := range q.watched {
		if u.at != nowhere || len(u.watched.Plugins) == 0 {
			return fmt.Errorf("unit %s is watched for plugins %v, and in place %d", u.Key, u.watched.Plugins, u.at)
		}
	}
	if err := q.flight.checkInvariants(); err != nil {
		return err
	}
	return q.nominated.checkInvariants()
}

func (g *group) checkInvariants() error {
	n := 0
	for i, a := range g.alike {
		if a.at != i || len(a.units) == 0 || g.alikeOf[a.alikeKey] != a {
			return fmt.Errorf("group of %s: set %d has position %d and %d units", g.waitsFor, i, a.at, len(a.units))
		}
		for slot, u := range a.units {
			if u.slot != slot || u.alike != a || u.group != g {
				return fmt.Errorf("group of %s: unit %s at %d has slot %d", g.waitsFor, u.Key, slot, u.slot)
			}
		}
		n += len(a.units)
	}
	if n != g.n || len(g.alikeOf) != len(g.alike) {
		return fmt.Errorf("group of %s: %d units, counted %d", g.waitsFor, n, g.n)
	}
	return nil
}

func (f *flight) checkInvariants() error {
	units, entries := 0, 0
	for e := f.first; e != nil; e = e.next {
		entries++
		if e.change == nil {
			units++
		}
	}
	if units != f.units || entries != f.entries || f.first != nil && f.first.change != nil {
		return fmt.Errorf("in-flight list of %d markers, %d entries, counted %d and %d, or starts with an event",
			units, entries, f.units, f.entries)
	}
	return nil
}

func (n *nominations) checkInvariants() error {
	if keys := slices.Sorted(maps.Keys(n.on)); !slices.Equal(keys, n.nodes) {
		return fmt.Errorf("nominated nodes %v, listed %v", keys, n.nodes)
	}
	total := 0
	for node, pods := range n.on { // order: any violation suffices
		for _, p := range pods {
			if n.of[p.UID].node != node {
				return fmt.Errorf("pod %s is nominated on %q and listed on %q", p.Key(), n.of[p.UID].node, node)
			}
		}
		if len(pods) == 0 {
			return fmt.Errorf("node %q has an empty list of nominations", node)
		}
		total += len(pods)
	}
	if total != len(n.of) {
		return fmt.Errorf("%d nominations listed by node, %d by pod", total, len(n.of))
	}
	return nil
}
