@_exported import ParleyVocabulary
