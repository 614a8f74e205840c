// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Cache keeps the classes of the pods of one profile, and groupings of their rows. It is valid for one store: each
// method takes a snapshot of it.
type Cache struct {
	env    environment
	budget int // bytes

	bySpec map[*cluster.PodSpec]*Class // keyOf(pod) -> class. Invariant: exactly the classes of the list
	newest *Class                      // ends of the list by last use
	oldest *Class
	bytes  int    // Invariant: the sum of size over bySpec
	spare  *Class // the last one dropped, for its columns; nil without one

	// single is the class of a pod for which no class is kept: prepared for the pod, evaluated on few rows.
	single    Class
	groupings groupings
}

// New returns a Cache for the plugins of a profile, at most 255 filters. It keeps at most budget bytes of classes,
// and as many bytes of groupings.
func New(filters []plugin.Filter, scorers []Scorer, m Meter, budget int) *Cache {
	ca := &Cache{
		env: environment{
			profile: newProfile(filters, scorers),
			work:    workspace{meter: m},
			shared:  sharedClasses{bySpec: map[*cluster.PodSpec]*sharedClass{}},
		},
		budget:    budget,
		bySpec:    map[*cluster.PodSpec]*Class{},
		groupings: groupings{byClass: map[*Class][]*Grouping{}, budget: budget},
	}
	ca.single.work = &ca.env.work
	return ca
}

// FirstUncached returns the index of the first uncached filter of the profile, the number of filters without one.
// Classes have the verdicts of the filters before it.
func (ca *Cache) FirstUncached() int { return ca.env.firstUncached }

// Uncached reports whether a filter, by its index in the profile, is prepared anew for each decision.
func (ca *Cache) Uncached(filter int) bool { return ca.env.uncached[filter] }

// Find returns the class of p, up to date. If kept is false there was none: the result then has the plans of p alone,
// and the caller continues with Keep, with EvaluateSingle, or not at all.
func (ca *Cache) Find(s cluster.Snapshot, p *cluster.Pod) (c *Class, kept bool) {
	if c = ca.bySpec[keyOf(p)]; c == nil {
		ca.single.prepareFilters(&ca.env.profile, ca.env.work.meter, s, p)
		return &ca.single, false
	}
	c.update(&ca.env, s, p)
	ca.used(c)
	return c, true
}

// Plans returns a class that has the plans of p, and nothing else that is up to date: no row is evaluated.
func (ca *Cache) Plans(s cluster.Snapshot, p *cluster.Pod) *Class {
	if c := ca.bySpec[keyOf(p)]; c != nil && !c.stale(s) {
		return c
	}
	ca.single.prepareFilters(&ca.env.profile, ca.env.work.meter, s, p)
	return &ca.single
}

// EvaluateSingle evaluates p on some rows. Must be called after Find for p has found no class.
func (ca *Cache) EvaluateSingle(s cluster.Snapshot, p *cluster.Pod, rows []cluster.NodeIdx) {
	ca.single.prepareScores(&ca.env.profile, ca.env.work.meter, s, p)
	ca.env.work.meter.Did(record.RowsEvaluated, len(rows))
	ca.single.evaluate(&ca.env.work, s, rows)
}

// Keep evaluates all rows for p and keeps the class. It drops the least recently used classes above the budget. Must be
// called after Find for p has found no class.
func (ca *Cache) Keep(s cluster.Snapshot, p *cluster.Pod) *Class {
	c := ca.newClass(keyOf(p))
	c.filters, ca.single.filters = ca.single.filters, c.filters
	c.fill(&ca.env, s, p)
	c.size = c.bytes()
	ca.bytes += c.size
	ca.bySpec[c.spec] = c
	ca.pushNewest(c)
	for ca.bytes+ca.env.shared.bytes > ca.budget && ca.oldest != c {
		ca.drop(ca.oldest)
	}
	return c
}

// newClass returns an empty class, with the columns of one that was dropped if there is one.
func (ca *Cache) newClass(spec *cluster.PodSpec) *Class {
	c := &Class{spec: spec, work: &ca.env.work}
	if ca.spare != nil {
		c.results, c.order, c.compact = ca.spare.results, ca.spare.order, ca.spare.compact
		c.compact.shared = nil
		ca.spare = nil
	}
	return c
}

// Drop forgets what is known of pods like p. A panic in a plugin may have interrupted an update.
func (ca *Cache) Drop(p *cluster.Pod) {
	ca.env.shared.invalidate(keyOf(p))
	if c := ca.bySpec[keyOf(p)]; c != nil {
		ca.drop(c)
		ca.spare = nil
	}
}

func (ca *Cache) drop(c *Class) {
	ca.groupings.forgetClass(c)
	ca.env.shared.detach(c.compact.shared)
	delete(ca.bySpec, c.spec)
	ca.spare = c
	ca.bytes -= c.size
	ca.unlink(c)
}

// Size returns the number of classes and the bytes they take.
func (ca *Cache) Size() (n, bytes int) { return len(ca.bySpec), ca.bytes + ca.env.shared.bytes }

// used moves a class to the newest end and counts what it has grown by.
func (ca *Cache) used(c *Class) {
	size := c.bytes()
	ca.bytes += size - c.size
	c.size = size
	if ca.newest != c {
		ca.unlink(c)
		ca.pushNewest(c)
	}
}

func (ca *Cache) pushNewest(c *Class) {
	c.newer, c.older = nil, ca.newest
	if ca.newest != nil {
		ca.newest.newer = c
	}
	ca.newest = c
	if ca.oldest == nil {
		ca.oldest = c
	}
}

func (ca *Cache) unlink(c *Class) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		ca.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		ca.oldest = c.newer
	}
	c.newer, c.older = nil, nil
}

// Grouping returns the rows of a class in groups that facets cannot distinguish, up to date; ok is false if there
// are too many groups. c must be the result of the last Find or Keep.
func (ca *Cache) Grouping(s cluster.Snapshot, c *Class, facets []plugin.Facet) (g *Grouping, ok bool) {
	return ca.groupings.of(s, c, facets)
}

// Groupings returns the number of groupings that are kept.
func (ca *Cache) Groupings() int { return len(ca.groupings.all) }
