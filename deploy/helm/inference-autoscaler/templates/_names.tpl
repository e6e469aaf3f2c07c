{{- define "autoscaler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of releases may have dots, and those of Services may not. */}}
{{- define "autoscaler.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name (include "autoscaler.name" .) -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if contains (include "autoscaler.name" .) .Release.Name -}}
{{- $name = .Release.Name -}}
{{- end -}}
{{- $name | replace "." "-" | trunc 50 | trimAll "-" -}}
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

{{/* A word that Kubernetes takes in a name; names of pools may hold more. */}}
{{- define "autoscaler.word" -}}
{{- . | lower | replace "_" "-" | replace "." "-" | trimAll "-" -}}
{{- end -}}

{{/* The full name, and what is given after it: (list . "chat"). What is too long for Kubernetes ends in a hash, and stays one of its kind. */}}
{{- define "autoscaler.nameOf" -}}
{{- $word := include "autoscaler.word" (last .) -}}
{{- $name := printf "%s-%s" (include "autoscaler.fullname" (first .)) $word -}}
{{- if gt (len $name) 63 -}}
{{- $name = printf "%s-%s" ($name | trunc 54 | trimAll "-") (sha256sum $word | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "autoscaler.labels" -}}
{{ include "autoscaler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "autoscaler.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}
