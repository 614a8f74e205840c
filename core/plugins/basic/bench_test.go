// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

func BenchmarkColumnTaintToleration(b *testing.B) {
	plugintest.BenchColumn(b, TaintToleration{}, "plain")
}
func BenchmarkColumnNodeUnschedulable(b *testing.B) {
	plugintest.BenchColumn(b, NodeUnschedulable{}, "plain")
}

func BenchmarkColumnNodePorts(b *testing.B) {
	plugintest.BenchColumn(b, NodePorts{}, "port")
	plugintest.BenchColumn(b, NodePorts{}, "taken")
}

func BenchmarkColumnNodeAffinity(b *testing.B) {
	plugintest.BenchColumn(b, plugintest.Must(NewNodeAffinity(NodeAffinityArgs{})), "picky")
	plugintest.BenchColumn(b, plugintest.Must(NewNodeAffinity(NodeAffinityArgs{})), "numbers")
}

func BenchmarkColumnImageLocality(b *testing.B) {
	plugintest.BenchColumn(b, ImageLocality{}, "plain")
	plugintest.BenchColumn(b, ImageLocality{}, "gpu")
}
