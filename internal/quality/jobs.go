// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// phillyCase is a cluster for all jobs, and how they are divided into pods.
type phillyCase struct {
	nodes int
	most  int64 // GPUs of a pod
}

// phillyCases have more nodes than the 32 whose GPUs the jobs use on average: they come in bursts.
var phillyCases = []phillyCase{{80, quality.GPUsPerNode}, {80, 1}, {64, quality.GPUsPerNode}, {64, 1}}

func (c phillyCase) String() string {
	if c.most == 1 {
		return fmt.Sprintf("%d nodes, gangs of pods of 1 GPU", c.nodes)
	}
	return fmt.Sprintf("%d nodes, a pod for each job", c.nodes)
}

// fifo is the reference that starts jobs in the order of arrival.
const fifo = "FIFO (reference)"

// philly runs the jobs of Philly, as pods and as gangs.
func philly(b *bench) error {
	b.head("scheduler", "cluster and jobs", "finished", "mean wait, h", "p99 wait, h", "mean completion time, h",
		"times bound B7", "decisions for a part of a gang", "pod seconds held by incomplete gangs")
	var jobs []quality.Job
	for _, c := range phillyCases {
		var skipped int
		var err error
		if jobs, skipped, err = b.phillyJobs(c.most); err != nil {
			return err
		}
		least := quality.LeastCompletion(jobs, c.nodes)
		for _, name := range b.shownRows(fifo, upstream, dropIn, "binpack") {
			if name == upstream && c.most == 1 { // conformance/standalone repeats attempts for its gangs without end
				continue
			}
			if err := b.phillyRow(name, c, jobs, least); err != nil {
				return err
			}
		}
		if c == phillyCases[len(phillyCases)-1] {
			b.say("%d jobs; %d rows without a duration were left out. Bound B7 is %.3f h on %d nodes.",
				len(jobs), skipped, least/3600, c.nodes)
		}
	}
	return nil
}

// phillyRow measures and prints one row. least is bound B7.
func (b *bench) phillyRow(name string, c phillyCase, jobs []quality.Job, least float64) error {
	r, known, err := measured(b, name, c.String(), b.seeds[0], func() (*quality.JobResult, error) {
		return b.runJobs(name, c, jobs)
	})
	if err != nil {
		return err
	}
	if !known {
		b.tableRow(name, c.String(), notMeasured, "", "", "", "", "", "")
		return nil
	}
	b.tableRow(name, c.String(), fmt.Sprint(r.Finished), fmt.Sprintf("%.2f", r.MeanWait/3600),
		fmt.Sprintf("%.2f", r.P99Wait/3600), fmt.Sprintf("%.3f", r.MeanCompletion/3600),
		fmt.Sprintf("%.3f", r.MeanCompletion/least), fmt.Sprint(r.Partial), fmt.Sprintf("%.0f", r.Hold))
	return nil
}

// phillyJobs reads the jobs, and counts the rows that were left out.
func (b *bench) phillyJobs(most int64) (jobs []quality.Job, skipped int, err error) {
	in, err := b.open("gavel_philly", "philly_msr_seed0_jobs.csv")
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	return quality.ReadJobs(in, "", most)
}

// runJobs runs the jobs under a scheduler.
func (b *bench) runJobs(name string, c phillyCase, jobs []quality.Job) (*quality.JobResult, error) {
	switch name {
	case fifo:
		return quality.RunJobs(jobs, quality.NewFIFO(c.nodes))
	case upstream:
		r, err := b.remote()
		if err != nil {
			return nil, err
		}
		return quality.RunJobs(jobs, quality.NewRemoteJobs(r, c.nodes, b.seeds[0]))
	}
	text, err := file(name, []v1.ResourceName{quality.JobGPU})
	if err != nil {
		return nil, err
	}
	make, err := stepper(text, uint64(b.seeds[0]))
	if err != nil {
		return nil, err
	}
	return quality.SimulateJobs(jobs, c.nodes, func() sim.Stepper { return make(nil) }, uint64(b.seeds[0])), nil
}
