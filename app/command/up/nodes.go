// SPDX-License-Identifier: Apache-2.0

package up

import "fmt"

// MinNodes is the minimum number of nodes for the demonstration: one of each shape and some to spread over.
const MinNodes = 5

// nodeSpec describes n nodes: one in ten has huge pages, one in ten devices behind a taint, the rest is ordinary.
func nodeSpec(n int) string {
	special := max(n/10, 1)
	if n < MinNodes {
		special = 0
	}
	text := fmt.Sprintf(`shapes:
- name: node
  count: %d
  capacity: {cpu: "8", memory: 32Gi}
  zones: [zone-a, zone-b, zone-c]
`, n-2*special)
	if special == 0 {
		return text
	}
	return text + fmt.Sprintf(`- name: huge
  count: %d
  capacity: {cpu: "16", memory: 64Gi}
  hugePages: {2Mi: 512, 1Gi: 4}
  zones: [zone-a, zone-b, zone-c]
- name: gpu
  count: %d
  capacity: {cpu: "16", memory: 128Gi}
  devices: {example.com/gpu: 8}
  zones: [zone-a, zone-b, zone-c]
  taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
`, special, special)
}
