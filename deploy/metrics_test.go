// SPDX-License-Identifier: Apache-2.0

package deploy

// metricsOfTheProcess are served beside those that package kube makes: libraries count them.
var metricsOfTheProcess = []string{
	"go_goroutines", "leader_election_master_status", "process_cpu_seconds_total", "process_resident_memory_bytes",
	"rest_client_requests_total",
}
