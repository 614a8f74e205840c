{{- define "kumiki.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "kumiki.lease" -}}
{{- .Values.leaseName | default (ternary "kube-scheduler" .Release.Name (eq .Values.mode "replace")) -}}
{{- end }}

{{- define "kumiki.image" -}}
{{- with .Values.image -}}
{{- .repository -}}{{- if hasPrefix "sha256:" .tag }}@{{ .tag }}{{ else if .tag }}:{{ .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "kumiki.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: kube-system
  resourceName: {{ include "kumiki.lease" . }}
profiles:
{{- if .Values.profiles }}
{{ toYaml .Values.profiles }}
{{- else }}
{{- if eq .Values.mode "replace" }}
- schedulerName: default-scheduler
{{- end }}
- schedulerName: kumiki
{{- end }}
{{- with .Values.configuration }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The name ends in a hash of the content: a new configuration rolls the pods. */ -}}
{{- define "kumiki.configName" -}}
{{ .Release.Name }}-config-{{ include "kumiki.config" . | sha256sum | trunc 10 }}
{{- end }}

{{- define "kumiki.monitoringLabels" -}}
{{ include "kumiki.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
