// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"syscall"
	"testing"

	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// BenchmarkSimulate runs the scenarios of examples/simulate/bench once each, with all metrics: make bench-simulate.
func BenchmarkSimulate(b *testing.B) {
	for _, name := range []string{"million", "ten-schedulers"} {
		b.Run(name, func(b *testing.B) {
			file, err := readScenario(examples + "bench/" + name + ".yaml")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				benchSimulate(b, file)
			}
		})
	}
}

func benchSimulate(b *testing.B, file *scenario.File) {
	s := &simulation{}
	before := usage(b)
	run, err := s.start(variant{name: "default", file: file}, 1)
	if err != nil {
		b.Fatal(err)
	}
	result := run.Finish(nil)
	after := usage(b)
	pods, _ := result.Find("pods.created")
	var failed []string
	for _, text := range file.Assertions {
		a, err := scenario.ParseAssertion(text)
		if err == nil {
			err = a.Check(&result)
		}
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	if failed != nil {
		b.Fatalf("ended because %s: %s", result.Reason, strings.Join(failed, "; "))
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/1e9, "cpu-s")
	b.ReportMetric(float64(cpu)/1e3 / *pods.Value, "cpu-µs/pod")
	b.ReportMetric(float64(after.Maxrss)/1024, "peak-MiB")
}

func usage(b *testing.B) (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u
}
