{{- define "autoscaler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "autoscaler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "autoscaler.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "autoscaler.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "autoscaler.serviceAccount" -}}
{{- default (.Values.serviceAccount.create | ternary (include "autoscaler.fullname" .) "default") .Values.serviceAccount.name -}}
{{- end -}}

{{- define "autoscaler.selector" -}}
app.kubernetes.io/name: {{ include "autoscaler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of the pods of one kind: (dict "root" . "component" "proxy"); without a component, of the only kind. */}}
{{- define "autoscaler.selectorOf" -}}
{{ include "autoscaler.selector" .root }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* The full name, and what is given after it: (list . "chat"). Names of pools may hold more than those of Kubernetes. */}}
{{- define "autoscaler.nameOf" -}}
{{- printf "%s-%s" (include "autoscaler.fullname" (first .)) (last . | lower | replace "_" "-" | replace "." "-") | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "autoscaler.labels" -}}
{{ include "autoscaler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "autoscaler.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}
