// SPDX-License-Identifier: Apache-2.0

package bound

// NodeClass is a number of equal nodes.
type NodeClass struct {
	Capacity []int64 // by resource
	Count    int
}

// PodClass is a number of equal pods.
type PodClass struct {
	Need  []int64 // by resource
	Count int
	// Value is what one pod that has a node counts.
	Value float64
	// Allowed reports for each class of nodes whether the pods may run there, whatever is free; nil allows all.
	Allowed []bool
}

// MostValue returns a value that no placement of the pods exceeds (bound B4): that of pods that can be divided, and of
// nodes of a class that are one. Nothing is placed on nodes that one pod does not fit or is not allowed on. It returns
// false if the program behind it was not solved.
func MostValue(pods []PodClass, nodes []NodeClass) (value float64, solved bool) {
	c := newClasses(nodes)
	gain := make([]float64, len(pods)*len(nodes))
	p := &program{gain: gain}
	for i := range pods {
		for k := range nodes {
			if c.fits(pods[i].Need, pods[i].Allowed, k) {
				gain[i*len(nodes)+k] = pods[i].Value
			}
		}
	}
	for i := range pods {
		p.add(c.ones(len(pods), i), float64(pods[i].Count))
	}
	c.limit(p, func(i int) []int64 { return pods[i].Need }, len(pods))
	value, solved = p.maximum()
	return value + tiny*float64(len(p.rows)), solved
}

// Tenant has equal tasks.
type Tenant struct {
	Task   []int64 // by resource
	Tasks  int
	Weight float64 // its share counts by this; 0 for 1
	// Allowed reports for each class of nodes whether its tasks may run there; nil allows all.
	Allowed []bool
}

// FairShares returns the weighted dominant shares of a division that is max-min fair, if tasks can be divided (bound
// B9): all shares grow alike, and one whose tenant cannot have more stays. The smallest share of whole tasks is not
// above the smallest of these; if it is as large, the same holds for the next one, and so on. It returns false if a
// program behind it was not solved.
func FairShares(tenants []Tenant, nodes []NodeClass) (shares []float64, solved bool) {
	f := &filling{classes: newClasses(nodes), tenants: tenants, floor: make([]float64, len(tenants)),
		full: make([]bool, len(tenants))}
	for range tenants {
		level, solved := f.level()
		if !solved {
			return nil, false
		}
		for i := range tenants {
			if !f.full[i] {
				f.floor[i] = level
			}
		}
		left := false
		for i := range tenants {
			most, solved := f.most(i)
			if !solved {
				return nil, false
			}
			f.full[i] = f.full[i] || most <= f.floor[i]+1e-7
			left = left || !f.full[i]
		}
		if !left {
			break
		}
	}
	return f.floor, true
}

// classes are nodes, whose sums of capacity are 1 in the programs.
type classes struct {
	nodes []NodeClass
	total []int64 // by resource
}

func newClasses(nodes []NodeClass) *classes {
	c := &classes{nodes: nodes}
	for _, n := range nodes {
		for len(c.total) < len(n.Capacity) {
			c.total = append(c.total, 0)
		}
		for r, v := range n.Capacity {
			c.total[r] += v * int64(n.Count)
		}
	}
	return c
}

// fits reports whether one pod may run on one node of a class.
func (c *classes) fits(need []int64, allowed []bool, k int) bool {
	if c.nodes[k].Count == 0 || allowed != nil && !allowed[k] {
		return false
	}
	for r, q := range need {
		if q > 0 && (r >= len(c.nodes[k].Capacity) || q > c.nodes[k].Capacity[r]) {
			return false
		}
	}
	return true
}

// ones returns a row that adds up what one class of pods has on all nodes. Variables are by class of pods, then by
// class of nodes.
func (c *classes) ones(pods, i int) []float64 {
	row := make([]float64, pods*len(c.nodes))
	for k := range c.nodes {
		row[i*len(c.nodes)+k] = 1
	}
	return row
}

// limit adds the capacity of each class of nodes, in shares of all capacity.
func (c *classes) limit(p *program, need func(i int) []int64, pods int) {
	for k, n := range c.nodes {
		for r, capacity := range n.Capacity {
			if c.total[r] == 0 {
				continue
			}
			row := make([]float64, len(p.gain))
			for i := range pods {
				if q := need(i); r < len(q) {
					row[i*len(c.nodes)+k] = float64(q[r]) / float64(c.total[r])
				}
			}
			p.add(row, float64(capacity*int64(n.Count))/float64(c.total[r]))
		}
	}
}

// dominant returns the largest share of all capacity that a task has of a resource.
func (c *classes) dominant(task []int64) (share float64) {
	for r, q := range task {
		if q > 0 && c.total[r] > 0 {
			share = max(share, float64(q)/float64(c.total[r]))
		}
	}
	return share
}

// filling is the state of progressive filling.
type filling struct {
	*classes
	tenants []Tenant
	floor   []float64 // by tenant: the share that it has at least
	full    []bool    // by tenant: it cannot have more
}

// program returns the program of what all tenants have, and a last variable without a gain.
func (f *filling) program() *program {
	p := &program{gain: make([]float64, len(f.tenants)*len(f.nodes)+1)}
	for i := range f.tenants {
		p.add(append(f.ones(len(f.tenants), i), 0), float64(f.tenants[i].Tasks))
	}
	f.limit(p, func(i int) []int64 { return f.tenants[i].Task }, len(f.tenants))
	return p
}

// share returns a row with the share of a tenant, times a factor.
func (f *filling) share(i int, factor float64) []float64 {
	t := &f.tenants[i]
	weight := t.Weight
	if weight == 0 {
		weight = 1
	}
	row := make([]float64, len(f.tenants)*len(f.nodes)+1)
	for k := range f.nodes {
		if f.fits(t.Task, t.Allowed, k) {
			row[i*len(f.nodes)+k] = float64(factor * f.dominant(t.Task) / weight)
		}
	}
	return row
}

// level returns the largest share that all tenants that are not full can have.
func (f *filling) level() (float64, bool) {
	p := f.program()
	last := len(p.gain) - 1
	p.gain[last] = 1
	for i := range f.tenants {
		row := f.share(i, -1)
		if f.full[i] {
			p.add(row, -f.floor[i])
			continue
		}
		row[last] = 1
		p.add(row, 0)
	}
	return p.maximum()
}

// most returns the largest share of a tenant if all have their floor.
func (f *filling) most(i int) (float64, bool) {
	p := f.program()
	p.gain = f.share(i, 1)
	for j := range f.tenants {
		if j != i {
			p.add(f.share(j, -1), -f.floor[j])
		}
	}
	return p.maximum()
}
