// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// DefaultChurnInterval is upstream's (operations.go, churnOp).
const DefaultChurnInterval = 500 * time.Millisecond

// opReaders: opcode -> how its fields are read.
var opReaders map[string]func(m *mapping) Op

func init() {
	opReaders = map[string]func(m *mapping) Op{ // here, because readPodSets looks operations up itself
		"createNodes":            readNodes,
		"createNamespaces":       readNamespaces,
		"createPods":             func(m *mapping) Op { return readPods(m) },
		"createPodSets":          readPodSets,
		"deletePods":             readDeletePods,
		"churn":                  readChurn,
		"createAny":              readCreateAny,
		"updateAny":              readUpdateAny,
		"barrier":                readBarrier,
		"sleep":                  func(m *mapping) Op { return &Sleep{Duration: m.duration("duration")} },
		"startCollectingMetrics": readStart,
		"stopCollectingMetrics":  func(*mapping) Op { return &StopCollectingMetrics{} },
		"startCollectingProfile": readStartProfile,
		"stopCollectingProfile":  readStopProfile,
		"createResourceClaims":   readClaims,
		"createResourceDriver":   readDriver,
		"allocResourceClaims":    func(m *mapping) Op { return &AllocResourceClaims{Namespace: m.text("namespace")} },
		"createPodGroups":        readPodGroups,
		"createPodMix":           readMix,
		"waitForPodGroups":       func(m *mapping) Op { return &WaitForPodGroups{Namespaces: m.texts("namespaces")} },
	}
}

// op reads one operation; nil when it is none.
func (r *reading) op(node *yaml.Node) Op {
	m := r.mapping(node, "operation")
	m.need("opcode")
	code := m.text("opcode")
	read, known := opReaders[code]
	if !known {
		if code != "" {
			r.mistake(m.get("opcode").line, "there is no operation %s; there are %s", code, strings.Join(opcodes(), ", "))
		}
		return nil
	}
	m.what = code
	out := read(m)
	m.done()
	return out
}

func opcodes() []string {
	var codes []string
	for code := range opReaders {
		codes = append(codes, code)
	}
	sort.Strings(codes)
	return codes
}

// needCount is a count that must be written.
func (m *mapping) needCount(name string) int {
	m.needValue(name)
	return m.count(name, 0)
}

// needValue reports that neither a field nor the name of its parameter is written.
func (m *mapping) needValue(name string) {
	if !m.has(name) && !m.has(name+"Param") {
		m.in.mistake(m.line, "%s needs %s or %sParam", m.what, name, name)
	}
}

// objects is a count, times its multiplier if it has one.
func (m *mapping) objects() int {
	n := m.needCount("count") * m.count("countMultiplier", 1) // each is at most maxCount
	if n > maxCount {
		m.in.mistake(m.line, "%s: %d objects are more than %d", m.what, n, maxCount)
		return 0
	}
	return n
}

func readNodes(m *mapping) Op {
	op := &CreateNodes{Count: m.objects()}
	op.Template = m.template("nodeTemplatePath", op.Count, kindNode)
	op.Allocatable = m.allocatable("nodeAllocatableStrategy")
	var chosen []string
	for _, strategy := range []string{"nodeAllocatableStrategy", "labelNodePrepareStrategy", "uniqueNodeLabelStrategy"} {
		if m.has(strategy) {
			chosen = append(chosen, strategy)
		}
	}
	if len(chosen) > 1 {
		m.in.mistake(m.line, "%s: %s: at most one of them", m.what, strings.Join(chosen, ", "))
	}
	if f := m.get("labelNodePrepareStrategy"); f != nil {
		s := m.in.mapping(f.value, "labelNodePrepareStrategy")
		s.need("labelKey")
		op.Label = &NodeLabel{Key: s.text("labelKey"), Values: s.texts("labelValues")}
		if len(op.Label.Values) == 0 {
			m.in.mistake(s.line, "labelNodePrepareStrategy needs labelValues")
		}
		s.done()
	}
	if f := m.get("uniqueNodeLabelStrategy"); f != nil {
		s := m.in.mapping(f.value, "uniqueNodeLabelStrategy")
		s.need("labelKey")
		op.UniqueLabel = &NodeUniqueLabel{Key: s.text("labelKey")}
		s.done()
	}
	return op
}

func (m *mapping) allocatable(name string) *NodeAllocatable {
	f := m.get(name)
	if f == nil {
		return nil
	}
	s := m.in.mapping(f.value, name)
	out := &NodeAllocatable{
		Allocatable:    s.textMap("nodeAllocatable"),
		CSIAllocatable: map[string]int32{},
		Migrated:       map[string]map[string]bool{},
	}
	plugins := s.texts("migratedPlugins")
	s.each("csiNodeAllocatable", func(driver string, line int, value *yaml.Node) {
		d := m.in.mapping(value, "csiNodeAllocatable of "+driver)
		n := d.needCount("count")
		if n > math.MaxInt32 {
			m.in.mistake(line, "%s: %d volumes are more than can be written down", driver, n)
		}
		d.done()
		out.CSIAllocatable[driver] = int32(n)
		for _, plugin := range plugins {
			if out.Migrated[driver] == nil {
				out.Migrated[driver] = map[string]bool{}
			}
			out.Migrated[driver][plugin] = true
		}
	})
	if len(plugins) > 0 && len(out.CSIAllocatable) == 0 {
		m.in.mistake(s.line, "%s: migratedPlugins without csiNodeAllocatable: no driver stands in for them", name)
	}
	s.done()
	return out
}

func readNamespaces(m *mapping) Op {
	m.need("prefix")
	op := &CreateNamespaces{Prefix: m.text("prefix"), Count: m.needCount("count")}
	op.Template = m.template("namespaceTemplatePath", op.Count, kindNamespace)
	return op
}

func readPods(m *mapping) *CreatePods {
	op := &CreatePods{
		Count:          m.objects(),
		CollectMetrics: m.flag("collectMetrics"),
		Namespace:      m.text("namespace"),
		SkipWait:       m.flag("skipWaitToCompletion"),
		SignatureBatch: m.count("signatureBatchSize", 0),
	}
	if op.SignatureBatch == 0 && m.in.source.signs {
		op.SignatureBatch = 1
	}
	op.Template = m.template("podTemplatePath", op.Count, kindPod)
	op.Volume = m.template("persistentVolumeTemplatePath", op.Count, kindVolume)
	op.Claim = m.template("persistentVolumeClaimTemplatePath", op.Count, kindClaim)
	if m.has("persistentVolumeTemplatePath") != m.has("persistentVolumeClaimTemplatePath") {
		m.in.mistake(m.line, "%s: persistentVolumeTemplatePath and persistentVolumeClaimTemplatePath: both or neither", m.what)
	}
	steady, duration := m.flag("steadyState"), m.duration("duration")
	switch {
	case steady && duration > 0:
		op.Steady = duration
	case steady && m.in.args != nil:
		m.in.mistake(m.line, "%s: a steady state needs a duration above 0", m.what)
	}
	if op.SkipWait && (op.CollectMetrics || steady) {
		m.in.mistake(m.line, "%s: skipWaitToCompletion goes with neither collectMetrics nor steadyState", m.what)
	}
	return op
}

func readPodSets(m *mapping) Op {
	m.need("namespacePrefix")
	op := &CreatePodSets{Count: m.needCount("count"), NamespacePrefix: m.text("namespacePrefix")}
	f := m.get("createPodsOp")
	if f == nil {
		m.in.mistake(m.line, "%s needs createPodsOp", m.what)
		return op
	}
	inner := m.in.mapping(f.value, "createPods")
	if inner.text("opcode") != "createPods" {
		// Not read: an alias can make the operation its own createPodsOp.
		m.in.mistake(f.line, "%s: createPodsOp must be a createPods", m.what)
		return op
	}
	op.Pods = *readPods(inner)
	inner.done()
	if op.Pods.Namespace != "" {
		m.in.mistake(f.line, "%s: createPodsOp: the namespace comes from namespacePrefix", m.what)
	}
	return op
}

func readDeletePods(m *mapping) Op {
	m.need("namespace")
	return &DeletePods{
		Namespace: m.text("namespace"),
		Labels:    m.textMap("labelSelector"),
		PerSecond: m.count("deletePodsPerSecond", 0),
		SkipWait:  m.flag("skipWaitToCompletion"),
	}
}

func readChurn(m *mapping) Op {
	op := &Churn{
		Number:    m.count("number", 0),
		Interval:  time.Duration(m.count("intervalMilliseconds", 0)) * time.Millisecond,
		Namespace: m.text("namespace"),
	}
	if op.Interval == 0 {
		op.Interval = DefaultChurnInterval
	}
	m.need("mode")
	switch mode := m.text("mode"); mode {
	case "create", "":
	case "recreate":
		op.Recreate = true
		if op.Number == 0 {
			m.in.mistake(m.line, "%s: mode recreate needs a number above 0", m.what)
		}
	default:
		m.in.mistake(m.get("mode").line, "%s: mode is create or recreate, not %s", m.what, mode)
	}
	for _, node := range m.list("templatePaths") {
		if t := m.in.template(node, 1, kindAny, nil); t != nil {
			op.Templates = append(op.Templates, *t)
		}
	}
	return op
}

func readCreateAny(m *mapping) Op {
	op := &CreateAny{Namespace: m.text("namespace"), Count: m.count("count", 1)}
	op.Template = m.needTemplate("templatePath", op.Count, kindAny)
	return op
}

func readUpdateAny(m *mapping) Op {
	op := &UpdateAny{
		Namespace:    m.text("namespace"),
		Count:        m.count("count", 1),
		PerSecond:    m.count("updatePerSecond", 0),
		Subresources: m.texts("subresources"),
	}
	op.Template = m.needTemplate("templatePath", op.Count, kindAny)
	return op
}

func readBarrier(m *mapping) Op {
	op := &Barrier{
		Namespaces: m.texts("namespaces"),
		Labels:     m.textMap("labelSelector"),
		Stage:      Stage(m.text("stageRequirement")),
	}
	switch op.Stage {
	case "":
		op.Stage = Scheduled
	case Scheduled, Attempted:
	default:
		m.in.mistake(m.get("stageRequirement").line, "%s: stageRequirement is Scheduled or Attempted, not %s", m.what, op.Stage)
	}
	return op
}

func readStart(m *mapping) Op {
	op := &StartCollectingMetrics{
		Name:       m.text("name"),
		Namespaces: m.texts("namespaces"),
		Labels:     m.textMap("labelSelector"),
	}
	if len(op.Namespaces) == 0 {
		m.in.mistake(m.line, "%s needs namespaces", m.what)
	}
	return op
}

func readStartProfile(m *mapping) Op {
	m.needCPU()
	m.need("filePath")
	op := &StartCollectingProfile{Path: m.text("filePath")}
	if op.Path != "" && !filepath.IsLocal(op.Path) {
		m.in.mistake(m.get("filePath").line, "%s: filePath must be relative and stay below its directory, not %s",
			m.what, op.Path)
	}
	return op
}

func readStopProfile(m *mapping) Op {
	m.needCPU()
	return &StopCollectingProfile{}
}

// needCPU reports a profile of another type than CPU, which is the only one that scheduler_perf has.
func (m *mapping) needCPU() {
	m.need("type")
	if of := m.text("type"); of != "" && !strings.EqualFold(of, "CPU") {
		m.in.mistake(m.get("type").line, "%s: type must be CPU, not %s", m.what, of)
	}
}

func readClaims(m *mapping) Op {
	m.need("namespace")
	op := &CreateResourceClaims{Count: m.needCount("count"), Namespace: m.text("namespace")}
	op.Template = m.needTemplate("templatePath", op.Count, kindResourceClaim)
	return op
}

func readDriver(m *mapping) Op {
	m.need("driverName")
	m.need("nodes")
	op := &CreateResourceDriver{
		Driver:        m.text("driverName"),
		ClaimsPerNode: m.needCount("maxClaimsPerNode"),
		Nodes:         m.text("nodes"),
	}
	if _, err := path.Match(op.Nodes, ""); err != nil {
		m.in.mistake(m.get("nodes").line, "%s: nodes: %v", m.what, err)
	}
	return op
}

func readPodGroups(m *mapping) Op {
	m.need("namespace")
	op := &CreatePodGroups{Count: m.objects(), Namespace: m.text("namespace")}
	if m.in.args != nil && op.Count == 0 {
		m.in.mistake(m.line, "%s needs a count above 0", m.what)
	}
	op.Template = m.needTemplate("templatePath", op.Count, kindPodGroup)
	return op
}
