{{- /* Names, labels and what several objects share. */ -}}

{{- define "kumiki.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- /* The release alone if its name contains that of the chart. 40 characters leave space for what objects append. */ -}}
{{- define "kumiki.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "kumiki.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "kumiki.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "kumiki.selector" -}}
app.kubernetes.io/name: {{ include "kumiki.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kumiki.labels" -}}
{{ include "kumiki.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /*
Metadata of one object: (dict "at" $ "name" …), and "namespace", "labels" and "annotations" if it has these.
*/ -}}
{{- define "kumiki.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "kumiki.labels" .at | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .at.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kumiki.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "kumiki.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{- /* The subject of all bindings. */ -}}
{{- define "kumiki.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kumiki.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "kumiki.lease" -}}
{{- .Values.leaseName | default (ternary "kube-scheduler" (include "kumiki.fullname" .) (eq .Values.mode "replace")) -}}
{{- end }}

{{- define "kumiki.replicas" -}}
{{- if eq .Values.mode "shadow" -}}1{{- else -}}{{- .Values.replicas | default 3 -}}{{- end -}}
{{- end }}

{{- define "kumiki.image" -}}
{{- with .Values.image -}}
{{- .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Requests by the number of pods in the cluster; docs/sizing.md has the measurements. */ -}}
{{- define "kumiki.resources" -}}
{{- $requests := index (dict
  "5k" (dict "cpu" "100m" "memory" "192Mi")
  "50k" (dict "cpu" "200m" "memory" "256Mi")
  "150k" (dict "cpu" "500m" "memory" "448Mi")) .Values.clusterSize -}}
{{- mergeOverwrite (dict "requests" $requests) (deepCopy .Values.resources) | toYaml -}}
{{- end }}

{{- /* No user is set by the image: these are what makes the pods pass the Pod Security Standard restricted. */ -}}
{{- define "kumiki.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
{{- if .Values.tls.secretName | or .Values.tls.certManager.enabled }}
# The key of the certificate is readable for this group.
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kumiki.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{- /* The Secret with the certificate of the port; empty if kumiki generates one at start. */ -}}
{{- define "kumiki.tlsSecret" -}}
{{- if .Values.tls.secretName -}}
{{- .Values.tls.secretName -}}
{{- else if .Values.tls.certManager.enabled -}}
{{- include "kumiki.fullname" . }}-tls
{{- end -}}
{{- end }}
