// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// smallClusters shows how often schedulers place the optimum. Upstream is a part of the comparison, so a test binary of
// the module that links it makes it.
func smallClusters(b *bench) error {
	run := b.runOptimum
	if b.optimum == "" {
		run = nil
	}
	r, known, err := measured(b, "all", "", b.seeds[0], run)
	if err != nil {
		return err
	}
	b.head("scheduler", "optimal", "of the cases without gangs: fewer than kube-scheduler", "more")
	if !known {
		b.tableRow("all", notMeasured, notMeasured, notMeasured)
		return nil
	}
	for _, row := range r.Rows {
		fewer, more := fmt.Sprint(row.Fewer), fmt.Sprint(row.More)
		if row.Name == upstream {
			fewer, more = "", ""
		}
		b.tableRow(row.Name, fmt.Sprintf("%d of %d (%.0f %%)", row.Optimal, row.Cases,
			100*float64(row.Optimal)/float64(row.Cases)), fewer, more)
	}
	b.say("%d cases, %d of them without gangs; the optimum of %d was proved. The goals are 80 %% and never fewer.",
		r.Cases, r.WithoutGangs, r.Proved)
	return nil
}

// runOptimum runs the test binary, which writes its counts to a file.
func (b *bench) runOptimum() (*quality.OptimumResult, error) {
	dir, err := os.MkdirTemp("", "optimum")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "result.json")
	c := exec.Command(b.optimum, "-test.run", "^TestOptimum$", "-test.timeout", "30m")
	c.Env = append(os.Environ(), quality.OptimumFile+"="+name)
	c.Stdout, c.Stderr = b.progress, b.progress
	failed := c.Run()
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	r := &quality.OptimumResult{}
	return r, json.Unmarshal(text, r)
}
