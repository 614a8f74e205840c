// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/sim/bound"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// orders are the orders in which items arrive, by the column of the table.
var orders = []struct {
	name  string
	of    func(in *quality.Instance, seed int64) []int
	drawn bool // by the seed
}{
	{"as in the file", func(in *quality.Instance, _ int64) []int { return in.Order() }, false},
	{"random", func(in *quality.Instance, seed int64) []int {
		return rand.New(rand.NewSource(seed)).Perm(len(in.Items))
	}, true},
	{"largest first", func(in *quality.Instance, _ int64) []int { return in.LargestFirst() }, false},
}

// packed is how the instances were placed.
type packed struct {
	Nodes   int
	Worst   float64 // nodes / optimum of one instance
	Optimal int     // instances
}

func (p packed) nodes() float64   { return float64(p.Nodes) }
func (p packed) worst() float64   { return p.Worst }
func (p packed) optimal() float64 { return float64(p.Optimal) }

// vectorpack places the instances of the set New with three resources whose optimum is known.
func vectorpack(b *bench) error {
	instances, err := b.readInstances()
	if err != nil {
		return err
	}
	optima, bounds := 0, 0
	for _, in := range instances {
		optima += in.Optimum
		bounds += bound.Bins(in.Items, in.Capacity)
	}
	b.head("configuration", "order of the pods", "nodes / optimum", "worst instance", "optimal instances")
	for _, name := range b.shownRows(upstream, dropIn, "binpack", "fgd") {
		for _, order := range orders {
			seeds := b.seedsOf(name)
			if !order.drawn {
				seeds = seeds[:1] // all are alike
			}
			all, err := overSeeds(b, name, order.name, seeds, func(seed int64) (packed, error) {
				return b.pack(name, instances, func(in *quality.Instance) []int { return order.of(in, seed) })
			})
			if err != nil {
				return err
			}
			b.tableRow(name, order.name, cell(func() string {
				return fmt.Sprintf("%.3f", mean(all, packed.nodes)/float64(optima))
			}, len(all), len(seeds)), cell(func() string {
				return fmt.Sprintf("%.3f", mean(all, packed.worst))
			}, len(all), len(seeds)), cell(func() string {
				return fmt.Sprintf("%.0f", mean(all, packed.optimal))
			}, len(all), len(seeds)))
		}
	}
	b.say("%d instances; the lower bounds (B2) are %.3f of the optima. The goals are 1.156 for one pod after "+
		"the other and 1.092\nfor a batch.", len(instances), float64(bounds)/float64(optima))
	return nil
}

// readInstances reads the instances with three resources whose optimum is known.
func (o *options) readInstances() (instances []*quality.Instance, err error) {
	archive, err := o.open("vectorpack", "New_instances.tar.gz")
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	table, err := o.open("vectorpack", "New_summary_known.csv")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	err = quality.ReadInstances(archive, table, func(in *quality.Instance) error {
		if in.Optimum > 0 && len(in.Capacity) == 3 {
			instances = append(instances, in)
		}
		return nil
	})
	return instances, err
}

// pack places all instances by a configuration.
func (b *bench) pack(config string, instances []*quality.Instance,
	order func(*quality.Instance) []int) (packed, error) {
	var out packed
	for _, in := range instances {
		var names []v1.ResourceName
		for r := range in.Capacity {
			names = append(names, quality.VectorResource(r))
		}
		used, err := in.Place(b.placer(config, names, 1), order(in))
		if err != nil {
			return packed{}, err
		}
		out.Nodes += used
		out.Worst = max(out.Worst, float64(used)/float64(in.Optimum))
		if used == in.Optimum {
			out.Optimal++
		}
	}
	return out, nil
}
