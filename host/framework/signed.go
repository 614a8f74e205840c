// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// signPod is the name of SignPod in messages and metrics. It is no extension point of a configuration.
const signPod config.Point = "signPod"

const (
	// reuseFor is how long a verdict is used for other pods of the same signature (upstream: maxBatchAge).
	reuseFor = record.Second / 2
	// mostSignatures bounds the signatures of which a plugin's verdicts are kept.
	mostSignatures = 64
)

// verdicts are the verdicts of one plugin about pods of one signature.
type verdicts struct {
	since record.Time // of the first
	rows  []verdict   // by row
}

// verdict is the verdict about one row. It holds as long as the row has the same NodeInfo.
type verdict struct {
	info *NodeInfo // nil for no verdict
	fits bool
	rejection
	unresolvable bool
}

// sign returns what SignPod of the plugin says of a pod, empty if the plugin does not sign it.
func (h *hosted) sign(pod *v1.Pod) string {
	var fragments []fwk.SignFragment
	status := h.call(signPod, lends(pod), func(ctx context.Context) (status *fwk.Status) {
		if fragments, status = h.signs.SignPod(ctx, pod); status.IsError() {
			h.broken(signPod, BadAnswer, status.AsError())
		}
		return status
	})
	if !status.IsSuccess() {
		return ""
	}
	values := map[string]any{} // key -> value
	for _, f := range fragments {
		values[f.Key] = f.Value
	}
	text, err := json.Marshal(values)
	if err != nil {
		h.broken(signPod, BadAnswer, err)
		return ""
	}
	return string(text)
}

// remembered returns the verdicts about pods that have the signature of a pod, to be used and completed; nil if the
// plugin's verdicts are not used again.
func (h *hosted) remembered(s cluster.Snapshot, pod *v1.Pod) *verdicts {
	if h.signs == nil || h.filter == nil || h.profile.host.env.Limits.Reuse != config.ReuseSigned {
		return nil
	}
	signature := h.sign(pod)
	if signature == "" {
		return nil
	}
	known := h.memory[signature]
	if known == nil || s.Now()-known.since > reuseFor {
		if known == nil && len(h.memory) >= mostSignatures || h.memory == nil {
			h.memory = map[string]*verdicts{} // signature -> verdicts
		}
		known = &verdicts{since: s.Now()}
		h.memory[signature] = known
	}
	for len(known.rows) < s.Rows() {
		known.rows = append(known.rows, verdict{})
	}
	return known
}

// verdictOn returns the verdict about a row: the one that is known for the signature of the pod, or else a new one.
func (f *podFilter) verdictOn(n cluster.NodeIdx, info *NodeInfo) plugin.Code {
	if f.memory == nil || f.d.dry != nil {
		return f.judge(info)
	}
	known := &f.memory.rows[n]
	if known.info == info {
		if known.fits {
			return plugin.Fit
		}
		return f.code(known.status, known.reasons, known.unresolvable, known.pending)
	}
	code := f.judge(info)
	switch {
	case f.failed != nil || len(f.rejections) >= int(plugin.CodeBits):
	case code == plugin.Fit:
		*known = verdict{info: info, fits: true}
	default:
		*known = verdict{info: info, rejection: f.rejection(code), unresolvable: code&plugin.Unresolvable != 0}
	}
	return code
}
